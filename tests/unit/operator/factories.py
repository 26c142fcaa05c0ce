"""Objects for the operator's tests, and a pure model of what applying a plan does."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePath
from typing import Any

from rollout_crds.control import GatewayJob
from rollout_crds.llmpool import LLMPool
from rollout_crds.pod import Pod, PodStatus
from rollout_crds.progress import JobProgress, StageCounters, StagesCounters
from rollout_crds.reasons import ConditionType, Reason
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.rolloutpool import RolloutPool
from rollout_operator.conditions import Fact, find, merge
from rollout_operator.observed import JobObserved
from rollout_operator.plan import FINALIZER, Owner, Plan, PurgeJob, SetJobState, SubmitJob
from rollout_operator.sites import LocalSite

NOW = datetime(2030, 1, 1, 12, 0, tzinfo=UTC)
SITE = LocalSite("local", PurePath("/state/run"))


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def metadata(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "uid": f"uid-{name}",
        "generation": 1,
        "creation_timestamp": NOW,
        "finalizers": [FINALIZER],
        **changes,
    }


def make_job(name: str = "demo", *, meta: dict[str, Any] | None = None, **spec: Any) -> RolloutJob:
    return RolloutJob.model_validate(
        {
            "metadata": metadata(name, **(meta or {})),
            "spec": {
                "tasks": {"uri": "file:///tasks.jsonl"},
                "handler": "math",
                "llm": {"poolRef": {"name": "model"}},
                "sandbox": {"image": "python"},
                **spec,
            },
        }
    )


def make_rollout_pool(name: str = "warm", **spec: Any) -> RolloutPool:
    return RolloutPool.model_validate({"metadata": metadata(name), "spec": spec})


def make_llm_pool(
    name: str = "model", *, meta: dict[str, Any] | None = None, **spec: Any
) -> LLMPool:
    default = {"model": "m", "launch": {"modelPath": "tiny"}}
    return LLMPool.model_validate(
        {"metadata": metadata(name, **(meta or {})), "spec": {**default, **spec}}
    )


def make_endpoint_pool(*urls: str, name: str = "model") -> LLMPool:
    return LLMPool.model_validate(
        {
            "metadata": metadata(name),
            "spec": {"model": "m", "tokenizer": "t", "endpoints": [{"url": url} for url in urls]},
        }
    )


def ready_pool() -> LLMPool:
    """An LLMPool with a healthy backend."""
    pool = make_endpoint_pool("http://engine:8000")
    fact = Fact(ConditionType.READY, "True", Reason.BACKENDS_HEALTHY)
    pool.status.conditions = merge([], [fact], 1, NOW)
    return pool


def running(pods: tuple[Pod, ...]) -> tuple[Pod, ...]:
    """The pods as they are once the node has started them."""
    status = PodStatus(phase="Running", start_time=NOW)
    return tuple(pod.model_copy(update={"status": status}) for pod in pods)


def gateway_job(
    *,
    finished: int = 0,
    total: int = 4,
    failed_groups: int = 0,
    loaded: bool = True,
    complete: bool = False,
) -> GatewayJob:
    run = StageCounters(done=finished, queued=total - finished)
    return GatewayJob(
        progress=JobProgress(
            groups=total, rollouts=total, finished=finished, stages=StagesCounters(run=run)
        ),
        loaded=loaded,
        complete=complete,
        usable_groups=total - failed_groups if complete else 0,
        failed_groups=failed_groups,
    )


def status_of(owner: Owner, kind: ConditionType) -> tuple[str, str]:
    """Status and reason of a condition, `("", "")` when it was never stated."""
    found = find(owner.status.conditions, kind)
    return ("", "") if found is None else (found.status, found.reason)


def after(
    job: RolloutJob, observed: JobObserved, plan: Plan, now: datetime = NOW
) -> tuple[RolloutJob, JobObserved]:
    """The world after a plan for a job was applied, if nothing else happens."""
    finalizers = list(job.metadata.finalizers)
    if plan.acquire_finalizer:
        finalizers.append(FINALIZER)
    if plan.release_finalizer:
        finalizers.remove(FINALIZER)
    deleted_at = now if plan.delete_self else job.metadata.deletion_timestamp
    meta = job.metadata.model_copy(
        update={"finalizers": finalizers, "deletion_timestamp": deleted_at}
    )
    update: dict[str, Any] = {"metadata": meta}
    if plan.status is not None:
        update["status"] = plan.status
        observed = replace(observed, progress_due=False)
    known = observed.gateway_job
    for action in plan.gateway:
        match action:
            case SubmitJob():
                known = gateway_job()
            case PurgeJob():
                known = None
            case SetJobState(_, state) if state.cancelled and known is not None:
                known = known.model_copy(update={"complete": True})
            case _:
                pass
    deleted = {pod.metadata.name for pod in plan.delete_pods}
    created = [
        pod.model_copy(
            update={"metadata": pod.metadata.model_copy(update={"creation_timestamp": now})}
        )
        for pod in plan.create_pods
    ]
    pods = [pod for pod in observed.pods if pod.metadata.name not in deleted] + created
    return job.model_copy(update=update), replace(observed, gateway_job=known, pods=tuple(pods))


def settle(
    job: RolloutJob, observed: JobObserved, now: datetime = NOW
) -> tuple[RolloutJob, JobObserved, list[Plan]]:
    """Plan and apply until nothing is left to do."""
    from rollout_operator.plan_job import plan_job

    plans: list[Plan] = []
    for _ in range(6):
        plan = plan_job(job, observed, now)
        plans.append(plan)
        if plan.is_empty:
            return job, observed, plans
        job, observed = after(job, observed, plan, now)
    msg = f"not settled after {len(plans)} plans; the last: {plans[-1]}"
    raise AssertionError(msg)
