"""Builders of the pods that the operator wants: pure functions from a spec to Pods.

The pod of replica `i` of a stage is `JOB-STAGE-i`. An annotation holds a hash of what the pod was
built from, so that a changed spec shows.
"""

from collections.abc import Mapping
from types import MappingProxyType

from rollout_crds.base import API_VERSION
from rollout_crds.llmpool import Launch, LLMPool
from rollout_crds.meta import ObjectMeta, OwnerReference
from rollout_crds.placement import SLURM_ANNOTATION, SLURM_SCHEDULER, Placement
from rollout_crds.pod import Container, Pod, PodEnvVar, PodSpec
from rollout_crds.result import Stage
from rollout_crds.rolloutjob import RolloutJob, Stages, StageSpec
from rollout_crds.rolloutpool import RolloutPool
from rollout_operator.names import child_name, digest
from rollout_operator.plan import Owner
from rollout_operator.sites import Site

STAGE_LABEL = "rollout-operator.dev/stage"
TEMPLATE_ANNOTATION = "rollout-operator.dev/template-hash"
_OWNER_LABELS = {
    "RolloutJob": "rollout-operator.dev/job",
    "RolloutPool": "rollout-operator.dev/pool",
    "LLMPool": "rollout-operator.dev/llm-pool",
}


def stage_pods(owner: RolloutJob | RolloutPool, stages: Stages, site: Site) -> tuple[Pod, ...]:
    """All pods that the three stage pools want."""
    wanted = ((Stage.INIT, stages.init), (Stage.RUN, stages.run), (Stage.EVAL, stages.eval))
    return tuple(
        _stage_pod(owner, stage, spec, index, site)
        for stage, spec in wanted
        for index in range(spec.replicas)
    )


def _stage_pod(
    owner: RolloutJob | RolloutPool, stage: Stage, spec: StageSpec, index: int, site: Site
) -> Pod:
    container = Container(
        name="stage",
        command=["rollout-stage", stage.value],
        env=[
            _work_source(owner),
            PodEnvVar(name="ROLLOUT_CONCURRENCY", value=str(spec.concurrency)),
        ],
    )
    suffix = (
        f"{stage.value}-{index}" if isinstance(owner, RolloutJob) else f"pool-{stage.value}-{index}"
    )
    return _pod(
        owner,
        suffix=suffix,
        component=f"stage-{stage.value}",
        labels={STAGE_LABEL: stage.value},
        annotations=_placement_annotations(owner.spec.placement),
        spec=_placed(owner.spec.placement, container, site),
    )


def _placed(placement: Placement | None, container: Container, site: Site) -> PodSpec:
    """A Slurm job is not restarted in place: its pod ends with it and is replaced."""
    if placement is None:
        return site.place("stage", container, "OnFailure")
    return PodSpec(containers=[container], scheduler_name=SLURM_SCHEDULER, restart_policy="Never")


def _placement_annotations(placement: Placement | None) -> dict[str, str]:
    if placement is None:
        return {}
    return {SLURM_ANNOTATION: placement.slurm.model_dump_json(by_alias=True, exclude_none=True)}


def _work_source(owner: RolloutJob | RolloutPool) -> PodEnvVar:
    if isinstance(owner, RolloutJob):
        return PodEnvVar(name="ROLLOUT_JOB_UID", value=owner.metadata.uid)
    return PodEnvVar(name="ROLLOUT_POOL", value=f"{owner.metadata.namespace}/{owner.metadata.name}")


def engine_pods(pool: LLMPool, launch: Launch, site: Site) -> tuple[Pod, ...]:
    """The inference servers that a pool wants launched."""
    return tuple(_engine_pod(pool, launch, index, site) for index in range(launch.replicas))


def _engine_pod(pool: LLMPool, launch: Launch, index: int, site: Site) -> Pod:
    env, listen = site.listen(child_name(pool.metadata.name, f"engine-{index}"))
    container = Container(
        name="engine",
        command=["vllm-python", "-m", "vllm.entrypoints.openai.api_server"],
        args=[*listen, *_engine_args(pool, launch, index), *launch.args],
        env=[
            *env,
            PodEnvVar(name="HF_HUB_OFFLINE", value="1"),
            PodEnvVar(name="VLLM_NO_USAGE_STATS", value="1"),
            *(PodEnvVar(name=env.name, value=env.value) for env in launch.env),
        ],
    )
    return _pod(
        pool,
        suffix=f"engine-{index}",
        component="engine",
        labels={},
        spec=site.place("engine", container, "Always"),
    )


def _engine_args(pool: LLMPool, launch: Launch, index: int) -> list[str]:
    """Arguments that our token records rely on; those of the user come after and win.

    Replicas differ in `--seed`: equal ones would draw equal samples for equal unseeded requests.
    `--generation-config vllm` keeps the model's own sampling defaults out.
    """
    model = launch.model_path
    return [
        *("--model", model if model.startswith("/") else f"$(ROLLOUT_MODELS)/{model}"),
        *("--served-model-name", pool.spec.model),
        *("--logprobs-mode", pool.spec.logprobs_mode),
        *("--generation-config", "vllm"),
        *("--seed", str(index)),
    ]


def _pod(
    owner: Owner,
    *,
    suffix: str,
    component: str,
    labels: dict[str, str],
    spec: PodSpec,
    annotations: Mapping[str, str] = MappingProxyType({}),
) -> Pod:
    template = spec.model_dump_json(by_alias=True) + "".join(annotations.values())
    return Pod(
        metadata=ObjectMeta(
            name=child_name(owner.metadata.name, suffix),
            namespace=owner.metadata.namespace,
            labels={**_common_labels(owner, component), **labels},
            annotations={TEMPLATE_ANNOTATION: digest(template), **annotations},
            owner_references=[owner_reference(owner)],
        ),
        spec=spec,
    )


def _common_labels(owner: Owner, component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "rollout",
        "app.kubernetes.io/instance": owner.metadata.name,
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/part-of": "rollout-operator",
        "app.kubernetes.io/managed-by": "rollout-operator",
        _OWNER_LABELS[owner.kind]: owner.metadata.name,
    }


def owner_reference(owner: Owner) -> OwnerReference:
    """The reference by which a pod belongs to its owner and is deleted with it."""
    return OwnerReference(
        api_version=API_VERSION, kind=owner.kind, name=owner.metadata.name, uid=owner.metadata.uid
    )


def is_owned_by(pod: Pod, uid: str) -> bool:
    """Whether the object with this uid controls the pod."""
    return any(ref.controller and ref.uid == uid for ref in pod.metadata.owner_references)
