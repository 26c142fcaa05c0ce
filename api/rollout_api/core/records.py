"""The record of a finished rollout: what its outcome means for training, and its timings."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from rollout_api.core.units import Unit
from rollout_crds.reasons import FailureReason
from rollout_crds.result import Failure, Outcome, RolloutRecord, Stage, StageTiming


@dataclass(frozen=True, slots=True)
class RolloutIdentity:
    """Which rollout it is."""

    namespace: str
    job: str
    job_uid: str
    group_id: str
    task_id: str
    rollout_id: str
    sample_index: int


@dataclass(frozen=True, slots=True)
class Ending:
    """How a rollout ended."""

    outcome: Outcome
    reward: float | None = None
    reward_components: Mapping[str, float] = field(default_factory=dict[str, float])
    details: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    failure: Failure | None = None
    cancel_reason: str | None = None


def gave_up(failure: Failure, *, policy_error: bool) -> Ending:
    """The ending of a rollout whose RUN or EVAL failed for good: never a reward."""
    outcome = Outcome.POLICY_ERROR if policy_error else Outcome.INFRA_ERROR
    return Ending(outcome, failure=failure)


def environment_failed(failure: Failure) -> Ending:
    """The ending of every rollout of a group whose INIT failed for good."""
    cause = f"{failure.reason}: {failure.message}" if failure.message else failure.reason
    return Ending(
        Outcome.INFRA_ERROR,
        failure=Failure(
            stage=Stage.INIT,
            boundary=failure.boundary,
            reason=FailureReason.ENVIRONMENT_FAILED,
            message=cause,
            attempt=failure.attempt,
            retryable=False,
        ),
    )


def untrainable_reasons(outcome: Outcome, provenance_issues: Iterable[str]) -> tuple[str, ...]:
    """Why a rollout must not be trained on; empty when it may."""
    if outcome is not Outcome.SCORED:
        return (outcome.value,)
    return tuple(provenance_issues)


def stage_timings(units: Iterable[Unit]) -> dict[Stage, StageTiming]:
    """The timings of the stages that were started."""
    return {
        unit.stage: StageTiming(
            queued_seconds=round(unit.queued_seconds, 6),
            active_seconds=round(unit.active_seconds, 6),
            attempts=unit.attempt,
        )
        for unit in units
        if unit.attempt > 0
    }


def build_record(
    identity: RolloutIdentity,
    ending: Ending,
    units: Iterable[Unit],
    provenance_issues: Iterable[str],
    metadata: Mapping[str, JsonValue],
) -> RolloutRecord:
    """Assemble the record, without the trajectory, which is stored apart."""
    reasons = untrainable_reasons(ending.outcome, provenance_issues)
    return RolloutRecord(
        namespace=identity.namespace,
        job=identity.job,
        job_uid=identity.job_uid,
        group_id=identity.group_id,
        task_id=identity.task_id,
        rollout_id=identity.rollout_id,
        sample_index=identity.sample_index,
        outcome=ending.outcome,
        trainable=not reasons,
        untrainable_reasons=reasons,
        reward=ending.reward,
        reward_components=dict(ending.reward_components),
        details=dict(ending.details),
        failure=ending.failure,
        cancel_reason=ending.cancel_reason,
        stages=stage_timings(units),
        metadata=dict(metadata),
    )
