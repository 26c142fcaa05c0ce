"""How far a job is: from counts of rows to the counters that people and the operator see."""

from collections.abc import Iterable
from dataclasses import dataclass

from rollout_api.core.units import UnitState
from rollout_crds.progress import JobProgress, OutcomeCounters, StageCounters, StagesCounters
from rollout_crds.result import Outcome, Stage

_COUNTER_OF_STATE = {
    UnitState.QUEUED: "queued",
    UnitState.BACKOFF: "queued",
    UnitState.LEASED: "running",
    UnitState.DONE: "done",
    UnitState.FAILED: "failed",
    UnitState.CANCELLED: "cancelled",
}


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens in and out of the model."""

    prompt: int = 0
    output: int = 0


@dataclass(frozen=True, slots=True)
class JobTotals:
    """What the job's own row tells."""

    groups: int
    rollouts: int
    finished: int
    invalid_tasks: int


def count_progress(
    totals: JobTotals,
    units: Iterable[tuple[Stage, UnitState, int]],
    outcomes: Iterable[tuple[Outcome, int]],
    tokens: Iterable[Tokens],
) -> JobProgress:
    """Add up the progress of a job.

    Args:
        totals: The job's totals.
        units: Numbers of units by stage and state; blocked units are in no counter.
        outcomes: Numbers of finished rollouts by outcome.
        tokens: Token counts to add up: of stored trajectories and of running rollouts.
    """
    parts = list(tokens)
    return JobProgress(
        groups=totals.groups,
        rollouts=totals.rollouts,
        finished=totals.finished,
        invalid_tasks=totals.invalid_tasks,
        stages=_stage_counters(units),
        outcomes=OutcomeCounters(**{outcome.value: count for outcome, count in outcomes}),
        prompt_tokens=sum(part.prompt for part in parts),
        output_tokens=sum(part.output for part in parts),
    )


def _stage_counters(units: Iterable[tuple[Stage, UnitState, int]]) -> StagesCounters:
    counts: dict[Stage, dict[str, int]] = {stage: {} for stage in Stage}
    for stage, state, count in units:
        counter = _COUNTER_OF_STATE.get(state)
        if counter is not None:
            counts[stage][counter] = counts[stage].get(counter, 0) + count
    return StagesCounters(**{stage.value: StageCounters(**counts[stage]) for stage in Stage})
