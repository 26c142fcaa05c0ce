"""What to do about an LLMPool: run its servers, state their health, register them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from rollout_crds.control import BackendRegistration, LLMPoolRegistration
from rollout_crds.llmpool import Backend, Launch, LLMPool, LLMPoolStatus
from rollout_crds.pod import Pod
from rollout_crds.reasons import ConditionType, Reason
from rollout_operator.conditions import Fact, merge
from rollout_operator.observed import BackendHealth, LLMPoolObserved
from rollout_operator.plan import (
    FINALIZER,
    GatewayAction,
    Plan,
    RegisterLLMPool,
    UnregisterLLMPool,
    earliest,
    events_of,
    joined,
    plural,
)
from rollout_operator.pods import engine_pods
from rollout_operator.replicas import Scaling, scale, troubles
from rollout_operator.sites import Site

PROBE_HEALTHY_SECONDS = 10.0
PROBE_UNHEALTHY_SECONDS = 1.0
_MAX_BACKEND_MESSAGE = 1024
_MAX_NAME = 256


@dataclass(frozen=True)
class Target:
    """A backend to probe."""

    name: str
    url: str


def targets(pool: LLMPool, site: Site, owned: Sequence[Pod]) -> list[Target]:
    """The backends that a pool has by its spec, but for pods that have no address yet."""
    if pool.spec.launch is None:
        urls = dict.fromkeys(endpoint.url for endpoint in pool.spec.endpoints or ())
        return [Target(url[:_MAX_NAME], url) for url in urls]
    names = [pod.metadata.name for pod in engine_pods(pool, pool.spec.launch, site)]
    existing = {pod.metadata.name: pod for pod in owned}
    found = ((name, site.engine_url(name, existing.get(name))) for name in names)
    return [Target(name, url) for name, url in found if url is not None]


def plan_llm_pool(pool: LLMPool, observed: LLMPoolObserved, now: datetime) -> Plan:
    """Decide what to do about the inference servers of a model."""
    if pool.metadata.deletion_timestamp is not None:
        return _plan_deletion(pool)
    backends = [(t, observed.health_of(t.url)) for t in targets(pool, observed.site, observed.pods)]
    scaling = _scaling(pool, observed, now)
    status = _status(pool, backends, observed, now)
    return Plan(
        acquire_finalizer=FINALIZER not in pool.metadata.finalizers,
        gateway=_registration(pool, backends, observed),
        delete_pods=scaling.delete,
        create_pods=scaling.create,
        status=status if status != pool.status else None,
        events=events_of(pool, pool.status.conditions, status.conditions),
        requeue_after=earliest(
            scaling.requeue_after, *(_probe_after(health, now) for _, health in backends)
        ),
    )


def _plan_deletion(pool: LLMPool) -> Plan:
    if FINALIZER not in pool.metadata.finalizers:
        return Plan()
    action = UnregisterLLMPool(pool.metadata.namespace, pool.metadata.name)
    return Plan(gateway=(action,), release_finalizer=True)


def _probe_after(health: BackendHealth | None, now: datetime) -> float:
    """Often at first, so that a started server is used at once; less so for one long gone."""
    if health is None or health.failing_since is None:
        return PROBE_HEALTHY_SECONDS if health is not None else PROBE_UNHEALTHY_SECONDS
    age = (now - health.failing_since).total_seconds()
    return min(PROBE_HEALTHY_SECONDS, max(PROBE_UNHEALTHY_SECONDS, age / 60))


def _scaling(pool: LLMPool, observed: LLMPoolObserved, now: datetime) -> Scaling:
    launch = pool.spec.launch
    if launch is None:
        return scale((), observed.pods, now)

    def is_stuck(pod: Pod) -> bool:
        url = observed.site.engine_url(pod.metadata.name, pod)
        health = observed.health_of(url) if url is not None else None
        created = pod.metadata.creation_timestamp
        if health is None or health.failing_since is None or created is None:
            return False
        silent = now - max(health.failing_since, created)
        return silent.total_seconds() >= launch.startup_timeout_seconds

    return scale(engine_pods(pool, launch, observed.site), observed.pods, now, is_stuck)


_Backends = Sequence[tuple[Target, BackendHealth | None]]


def _status(
    pool: LLMPool, backends: _Backends, observed: LLMPoolObserved, now: datetime
) -> LLMPoolStatus:
    facts = [compute_ready(pool, backends, observed)]
    return LLMPoolStatus(
        conditions=merge(pool.status.conditions, facts, pool.metadata.generation, now),
        observed_generation=pool.metadata.generation,
        backends=[_backend(target, health) for target, health in backends],
        healthy_backends=_count_healthy(backends),
    )


def _backend(target: Target, health: BackendHealth | None) -> Backend:
    if health is None:
        return Backend(name=target.name, url=target.url, message="not probed yet")
    return Backend(
        name=target.name,
        url=target.url,
        healthy=health.state == "healthy",
        max_model_len=health.max_model_len,
        message=health.message[:_MAX_BACKEND_MESSAGE],
    )


def _count_healthy(backends: _Backends) -> int:
    return sum(1 for _, health in backends if health is not None and health.state == "healthy")


def compute_ready(pool: LLMPool, backends: _Backends, observed: LLMPoolObserved) -> Fact:
    """Whether at least one backend answers and serves the model, or why not."""
    kind, healthy = ConditionType.READY, _count_healthy(backends)
    causes = [health.message for _, health in backends if health is not None]
    if healthy:
        message = joined([f"{healthy} of {plural(len(backends), 'backend')} healthy", *causes])
        return Fact(kind, "True", Reason.BACKENDS_HEALTHY, message)
    if any(health is not None and health.state == "model_not_served" for _, health in backends):
        return Fact(kind, "False", Reason.MODEL_NOT_SERVED, joined(causes))
    if pool.spec.launch is not None:
        return _launched_not_ready(pool.spec.launch, backends, observed)
    if any(health is None for _, health in backends):
        return Fact(kind, "Unknown", Reason.BACKENDS_UNREACHABLE, "not probed yet")
    message = f"{joined(causes)}; start the servers there, or correct `spec.endpoints`"
    return Fact(kind, "False", Reason.BACKENDS_UNREACHABLE, message)


def _launched_not_ready(launch: Launch, backends: _Backends, observed: LLMPoolObserved) -> Fact:
    kind = ConditionType.READY
    if launch.replicas == 0:
        message = "`launch.replicas` is 0: raise it to start a server"
        return Fact(kind, "False", Reason.BACKENDS_UNREACHABLE, message)
    why = troubles(observed.pods)
    if why:
        return Fact(kind, "False", Reason.BACKENDS_UNREACHABLE, joined(why))
    starting = ", ".join(f"`{target.name}`" for target, _ in backends)
    message = f"no answer yet from pod {starting}" if backends else "no pod has an address yet"
    return Fact(kind, "False", Reason.BACKENDS_STARTING, message)


def _registration(
    pool: LLMPool, backends: _Backends, observed: LLMPoolObserved
) -> tuple[GatewayAction, ...]:
    registration = LLMPoolRegistration(
        namespace=pool.metadata.namespace,
        name=pool.metadata.name,
        spec=pool.spec,
        backends=tuple(_register(target, health) for target, health in backends),
    )
    if registration == observed.registration:
        return ()
    return (RegisterLLMPool(registration),)


def _register(target: Target, health: BackendHealth | None) -> BackendRegistration:
    return BackendRegistration(
        name=target.name,
        url=target.url,
        healthy=health is not None and health.state == "healthy",
        max_model_len=health.max_model_len if health is not None else None,
    )
