"""The result of a rollout keeps three things apart: its outcome, its use in training, its failure.

An infrastructure failure has no reward: `reward` is set only when the grader gave one.
"""

from enum import StrEnum
from typing import Literal

from pydantic import Field, JsonValue

from rollout_crds.base import DataModel
from rollout_crds.trajectory import Trajectory


class Stage(StrEnum):
    """The stages of a rollout, each with its own pool of workers."""

    INIT = "init"
    RUN = "run"
    EVAL = "eval"


class Outcome(StrEnum):
    """How a rollout ended."""

    SCORED = "scored"
    """The grader gave a reward, 0 included."""
    POLICY_ERROR = "policy_error"
    """The agent made grading impossible, for example by exhausting its own sandbox."""
    INFRA_ERROR = "infra_error"
    """Something of ours, the site's or the task's failed; says nothing about the policy."""
    CANCELLED = "cancelled"
    """Ended on request, by a deadline of the job, or because it was not needed any more."""
    STALE = "stale"
    """Finished with weights older than the job allows."""


class Boundary(StrEnum):
    """Whose failure it is."""

    MODEL = "model"
    """The engine or the way to it."""
    SANDBOX = "sandbox"
    TASK = "task"
    """The task's own set-up or grader."""
    WORKER = "worker"
    """The stage worker: died, lost its lease, or a defect of ours."""
    DEADLINE = "deadline"
    """Active time of the stage, or the job's deadline, ran out."""


class Failure(DataModel):
    """Why a stage could not do its work."""

    stage: Stage
    boundary: Boundary
    reason: str
    """One CamelCase word; the documented list is in `rollout_crds.reasons`."""
    message: str = ""
    """What is wrong and where, in a sentence; never a traceback."""
    attempt: int
    retryable: bool


class StageTiming(DataModel):
    """Seconds of one stage by the gateway's clock; the last attempt, with all queueing."""

    queued_seconds: float
    active_seconds: float
    attempts: int


class RolloutRecord(DataModel):
    """One finished rollout as the trainer reads it: a line of the JSONL."""

    type: Literal["rollout"] = "rollout"
    namespace: str
    job: str
    job_uid: str
    group_id: str
    task_id: str
    rollout_id: str
    sample_index: int
    outcome: Outcome
    trainable: bool
    untrainable_reasons: tuple[str, ...] = ()
    """Names from `provenance_issues`, or the outcome when it is not `scored`."""
    reward: float | None = None
    reward_components: dict[str, float] = Field(default_factory=dict)
    details: dict[str, JsonValue] = Field(default_factory=dict)
    """For people: what the grader said of it."""
    failure: Failure | None = None
    cancel_reason: str | None = None
    """Of a `cancelled` rollout: why its job was ended, such as `DeadlineExceeded`."""
    stages: dict[Stage, StageTiming] = Field(default_factory=dict)
    trajectory: Trajectory | None = None
    """Missing only when the model was never called."""
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    """The task's metadata."""


class RolloutSummary(DataModel):
    """One rollout without its trajectory: a row of a table."""

    rollout_id: str
    group_id: str
    task_id: str
    sample_index: int
    stage: Stage
    """The stage that it is in, or ended in."""
    state: Literal["waiting", "queued", "running", "finished"]
    """`waiting`: for the INIT of its group."""
    outcome: str | None = None
    trainable: bool | None = None
    reward: float | None = None
    failure: Failure | None = None
    """Of a rollout that has not finished: why its stage is tried again."""
    turns: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0
    init_seconds: float | None = None
    run_seconds: float | None = None
    eval_seconds: float | None = None


class StreamEnd(DataModel):
    """Last line of a stream of records: where to go on, and whether more can come."""

    type: Literal["end"] = "end"
    cursor: int
    """Pass it back to read only what is newer."""
    complete: bool
    """No further record will come: the job has finished."""
