"""The life of a unit of work: one stage of one group (INIT) or of one rollout (RUN, EVAL).

A unit is blocked until the stage before it is done, then queued, leased, and done, failed or
cancelled. `attempt` grows with every lease and fences late results; `charged` counts only the
attempts that failed, and alone decides when to give up. Times are Unix seconds by the gateway.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary, Failure, Stage
from rollout_crds.wire import HandedBack, StageFailed, StageResult

LONGEST_BACKOFF_SECONDS = 60.0


class UnitState(StrEnum):
    """Where a unit is."""

    BLOCKED = "blocked"
    """The stage before it is not done."""
    QUEUED = "queued"
    BACKOFF = "backoff"
    """Queued again at `due_at`."""
    LEASED = "leased"
    """Owned by a worker until `due_at`."""
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


FINAL_STATES = frozenset({UnitState.DONE, UnitState.FAILED, UnitState.CANCELLED})


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of work as it is stored."""

    work_id: str
    stage: Stage
    state: UnitState
    attempt: int = 0
    charged: int = 0
    worker: str | None = None
    incarnation: str | None = None
    backend: str | None = None
    queued_at: float = 0.0
    leased_at: float = 0.0
    due_at: float | None = None
    queued_seconds: float = 0.0
    active_seconds: float = 0.0
    completed_attempt: int = 0
    completed_digest: str = ""


@dataclass(frozen=True, slots=True)
class Holder:
    """A worker process."""

    worker: str
    incarnation: str


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When to try a failed unit again."""

    max_attempts: int
    backoff_seconds: float

    def backoff(self, charged: int) -> float:
        """Seconds to wait after the `charged`-th failure."""
        return min(LONGEST_BACKOFF_SECONDS, self.backoff_seconds * 2.0 ** min(charged - 1, 30))


@dataclass(frozen=True, slots=True)
class Requeued:
    """The unit will be tried again."""

    unit: Unit
    failure: Failure | None = None
    """What the last attempt failed with, unless it was handed back."""


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The unit failed for good."""

    unit: Unit
    failure: Failure
    policy_error: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """The unit succeeded."""

    unit: Unit


@dataclass(frozen=True, slots=True)
class Repeated:
    """This very completion was accepted before."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The completion does not come from the present lease."""

    message: str


def enqueue(unit: Unit, now: float) -> Unit:
    """Make a unit leasable that was blocked or in backoff."""
    queued_at = now if unit.state is UnitState.BLOCKED else unit.queued_at
    return replace(unit, state=UnitState.QUEUED, queued_at=queued_at, due_at=None)


def lease(unit: Unit, holder: Holder, backend: str | None, now: float, until: float) -> Unit:
    """Give a queued unit to a worker."""
    return replace(
        unit,
        state=UnitState.LEASED,
        attempt=unit.attempt + 1,
        worker=holder.worker,
        incarnation=holder.incarnation,
        backend=backend,
        leased_at=now,
        due_at=until,
        queued_seconds=unit.queued_seconds + max(0.0, now - unit.queued_at),
    )


def holds(unit: Unit, holder: Holder, attempt: int) -> bool:
    """Whether this worker process owns the unit under this attempt."""
    return (
        unit.state is UnitState.LEASED
        and unit.attempt == attempt
        and unit.worker == holder.worker
        and unit.incarnation == holder.incarnation
    )


def hand_back(unit: Unit, now: float) -> Unit:
    """Queue a leased unit again without charging the attempt."""
    return replace(_ended(unit, UnitState.QUEUED, now), queued_at=now)


def cancel(unit: Unit, now: float) -> Unit:
    """End a unit that is not needed any more; one that has ended stays as it is."""
    if unit.state in FINAL_STATES:
        return unit
    return _ended(unit, UnitState.CANCELLED, now)


def expire(unit: Unit, policy: RetryPolicy, now: float) -> Requeued | GaveUp:
    """Take a unit from a worker that stopped renewing its lease."""
    return _charge(unit, _lost_worker(unit, "stopped renewing its lease"), policy, now)


def reclaim(unit: Unit, policy: RetryPolicy, now: float) -> Requeued | GaveUp:
    """Take a unit from a worker process that is known to be gone: charged, but without backoff."""
    failure = _lost_worker(unit, "was restarted while it held the lease")
    return _charge(unit, failure, replace(policy, backoff_seconds=0.0), now)


def complete(
    unit: Unit,
    holder: Holder,
    attempt: int,
    result: StageResult,
    digest: str,
    policy: RetryPolicy,
    now: float,
) -> Done | Requeued | GaveUp | Repeated | Refused:
    """Decide what a worker's completion does to a unit.

    Args:
        unit: The unit as stored.
        holder: Who sent the completion.
        attempt: The attempt of the lease that it ends.
        result: What came of it.
        digest: Digest of `result`, to recognise the same completion sent again.
        policy: The job's rules for another attempt.
        now: The gateway's time.
    """
    if unit.completed_attempt == attempt and unit.completed_digest == digest:
        return Repeated()
    if not holds(unit, holder, attempt):
        return Refused(_why_refused(unit, attempt))
    unit = replace(unit, completed_attempt=attempt, completed_digest=digest)
    if isinstance(result, HandedBack):
        return Requeued(hand_back(unit, now))
    if isinstance(result, StageFailed):
        if result.policy_error and unit.stage is not Stage.INIT:
            return GaveUp(_ended(unit, UnitState.FAILED, now), result.failure, policy_error=True)
        return _charge(unit, result.failure, policy, now)
    return Done(_ended(unit, UnitState.DONE, now))


def _charge(unit: Unit, failure: Failure, policy: RetryPolicy, now: float) -> Requeued | GaveUp:
    unit = replace(unit, charged=unit.charged + 1)
    if not failure.retryable or unit.charged >= policy.max_attempts:
        return GaveUp(_ended(unit, UnitState.FAILED, now), failure)
    wait = policy.backoff(unit.charged)
    if wait <= 0:
        return Requeued(hand_back(unit, now), failure)
    waiting = replace(_ended(unit, UnitState.BACKOFF, now), queued_at=now, due_at=now + wait)
    return Requeued(waiting, failure)


def _ended(unit: Unit, state: UnitState, now: float) -> Unit:
    active = max(0.0, now - unit.leased_at) if unit.state is UnitState.LEASED else 0.0
    return replace(
        unit,
        state=state,
        worker=None,
        incarnation=None,
        backend=None,
        due_at=None,
        active_seconds=active or unit.active_seconds,
    )


def _lost_worker(unit: Unit, what: str) -> Failure:
    return Failure(
        stage=unit.stage,
        boundary=Boundary.WORKER,
        reason=FailureReason.LEASE_EXPIRED,
        message=f"worker {unit.worker!r} {what} of {unit.work_id!r}",
        attempt=unit.attempt,
        retryable=True,
    )


def _why_refused(unit: Unit, attempt: int) -> str:
    if unit.state in FINAL_STATES:
        return f"{unit.work_id!r} has already ended as {unit.state.value!r}; drop this result"
    return (
        f"attempt {attempt} of {unit.work_id!r} does not hold its lease "
        f"(last attempt {unit.attempt}, now {unit.state.value!r}); drop this result"
    )
