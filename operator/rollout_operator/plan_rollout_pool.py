"""What to do about a RolloutPool: keep its stage pods running."""

from datetime import datetime

from rollout_crds.reasons import ConditionType, Reason
from rollout_crds.rolloutpool import RolloutPool, RolloutPoolStatus
from rollout_operator.conditions import Fact, merge
from rollout_operator.observed import RolloutPoolObserved
from rollout_operator.plan import Plan, events_of, joined, plural
from rollout_operator.pods import stage_pods
from rollout_operator.replicas import ready, scale, troubles


def plan_rollout_pool(pool: RolloutPool, observed: RolloutPoolObserved, now: datetime) -> Plan:
    """Decide what to do about a pool of warm stage pods."""
    if pool.metadata.deletion_timestamp is not None:
        return Plan()
    wanted = stage_pods(pool, pool.spec.stages, observed.site)
    scaling = scale(wanted, observed.pods, now)
    running = len(ready(wanted, observed.pods))
    facts = compute_ready(running, len(wanted), troubles(observed.pods))
    status = RolloutPoolStatus(
        conditions=merge(pool.status.conditions, facts, pool.metadata.generation, now),
        observed_generation=pool.metadata.generation,
        replicas=len(observed.pods),
        ready_replicas=running,
    )
    return Plan(
        delete_pods=scaling.delete,
        create_pods=scaling.create,
        status=status if status != pool.status else None,
        events=events_of(pool, pool.status.conditions, status.conditions),
        requeue_after=scaling.requeue_after,
    )


def compute_ready(running: int, wanted: int, why: list[str]) -> tuple[Fact, Fact]:
    """Whether all stage pods run: as `StagesReady`, and as the summary `Ready`."""
    message = joined([f"{running} of {plural(wanted, 'stage pod')} running", *why])
    kinds = (ConditionType.STAGES_READY, ConditionType.READY)
    if running == wanted:
        first, second = (Fact(kind, "True", Reason.STAGE_PODS_RUNNING, message) for kind in kinds)
    else:
        first, second = (
            Fact(kind, "False", Reason.WAITING_FOR_STAGE_PODS, message) for kind in kinds
        )
    return first, second
