"""Messages between stage workers and the gateway.

Work moves by pull. A worker leases units of work of its stage, renews them by one heartbeat, and
completes each with the attempt number of its lease: the fencing token that lets the gateway refuse
a late result of an older attempt.
"""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from rollout_crds.base import DataModel
from rollout_crds.llmpool import LLMPoolSpec
from rollout_crds.result import Failure, Stage
from rollout_crds.rolloutjob import RolloutSpec
from rollout_crds.task import Task
from rollout_crds.trajectory import Trajectory


class BlobRef(DataModel):
    """A file in the blob store, addressed by its content."""

    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    size: int
    """Bytes."""


class PreparedEnvironment(DataModel):
    """Result of INIT, shared by all samples of the group."""

    image: str
    """Image reference as the node resolves it."""
    layer: BlobRef | None = None
    """Overlay with the set-up done; none when there was nothing to set up."""


class RunArtifact(DataModel):
    """What is carried from the agent's sandbox to the grader's."""

    answer: str | None = None
    """Last assistant message."""
    files: BlobRef | None = None
    """Tar archive of the declared artefact paths."""


class LLMBackend(DataModel):
    """The engine that a rollout stays on."""

    name: str
    url: str
    pool: LLMPoolSpec
    max_model_len: int | None = None


class WorkerHello(DataModel):
    """A worker process announces itself; leases of its earlier incarnations are given back."""

    worker: str
    """Stable name, such as that of the pod."""
    incarnation: str
    """Unique per process start."""


class LeaseRequest(DataModel):
    """Ask for work."""

    worker: str
    incarnation: str
    stage: Stage
    job_uid: str | None = None
    """Only work of this job; exactly one of `job_uid` and `pool` is set."""
    pool: str | None = None
    """Only work of jobs that refer to this RolloutPool, as `namespace/name`."""
    capacity: Annotated[int, Field(ge=1, le=4096)]
    """Most leases to give."""
    wait_seconds: Annotated[float, Field(ge=0, le=60)] = 20.0
    """How long to hold the request open while there is no work."""


class Lease(DataModel):
    """One unit of work, owned until `lease_seconds` after the last heartbeat."""

    work_id: str
    """`init:<group_id>`, `run:<rollout_id>` or `eval:<rollout_id>`."""
    attempt: int
    """1-based; fences late results."""
    stage: Stage
    job_uid: str
    job_name: str
    namespace: str
    spec: RolloutSpec
    task: Task
    """In RUN without `grading`; INIT checks it, EVAL uses it."""
    group_id: str
    rollout_id: str | None = None
    sample_index: int | None = None
    environment: PreparedEnvironment | None = None
    """Set in RUN and EVAL."""
    artifact: RunArtifact | None = None
    """Set in EVAL."""
    trajectory: Trajectory | None = None
    """Set in EVAL, for scorers that look at the conversation."""
    backend: LLMBackend | None = None
    """Set in RUN."""
    lease_seconds: float
    active_deadline_seconds: int


class LeaseProgress(DataModel):
    """How far a leased unit is."""

    work_id: str
    attempt: int
    turns: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0


class Heartbeat(DataModel):
    """Renews all leases of a worker at once."""

    worker: str
    incarnation: str
    leases: tuple[LeaseProgress, ...]


class Revocation(DataModel):
    """A lease that the worker must drop now."""

    work_id: str
    attempt: int
    reason: Literal["cancelled", "suspended", "lost"]
    """`lost`: the lease had expired and belongs to somebody else, or to nobody."""


class HeartbeatReply(DataModel):
    """Answer to a heartbeat."""

    revoked: tuple[Revocation, ...] = ()


class InitDone(DataModel):
    """INIT succeeded."""

    kind: Literal["init"] = "init"
    environment: PreparedEnvironment


class RunDone(DataModel):
    """RUN ended in a trajectory, whatever it is worth."""

    kind: Literal["run"] = "run"
    trajectory: Trajectory
    artifact: RunArtifact


class EvalDone(DataModel):
    """EVAL gave a reward."""

    kind: Literal["eval"] = "eval"
    reward: float
    reward_components: dict[str, float] = Field(default_factory=dict)
    details: dict[str, JsonValue] = Field(default_factory=dict)
    """For people: what the grader printed."""


class StageFailed(DataModel):
    """The stage could not do its work."""

    kind: Literal["failed"] = "failed"
    failure: Failure
    policy_error: bool = False
    """The agent is to blame, so it is not retried and the rollout ends as `policy_error`."""
    trajectory: Trajectory | None = None
    """Of RUN: the calls made so far."""


class HandedBack(DataModel):
    """The worker gives the unit back unfinished (it stops, or the lease was revoked)."""

    kind: Literal["handed_back"] = "handed_back"
    reason: str


StageResult = Annotated[
    InitDone | RunDone | EvalDone | StageFailed | HandedBack, Field(discriminator="kind")
]


class Completion(DataModel):
    """The end of a lease. Sending the same one again is answered the same way."""

    worker: str
    incarnation: str
    work_id: str
    attempt: int
    result: StageResult
