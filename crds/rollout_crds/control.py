"""Messages between the operator and the gateway: jobs and engines handed over, and how jobs stand.

Sending any of them again changes nothing.
"""

from rollout_crds.base import DataModel
from rollout_crds.llmpool import LLMPoolSpec
from rollout_crds.progress import JobProgress
from rollout_crds.rolloutjob import RolloutJobSpec, Stages
from rollout_crds.taskfile import TaskLineError


class JobSubmission(DataModel):
    """A job for the gateway to load."""

    uid: str
    name: str
    namespace: str
    spec: RolloutJobSpec


class LoadedJob(DataModel):
    """What became of a submission."""

    groups: int
    rollouts: int
    invalid_tasks: tuple[TaskLineError, ...]


class GatewayJob(DataModel):
    """What the gateway knows about a job."""

    progress: JobProgress
    loaded: bool
    """All tasks are there; else submitting the job again goes on with it."""
    complete: bool
    """No further record of it can come."""
    usable_groups: int
    failed_groups: int
    invalid_tasks: tuple[TaskLineError, ...] = ()


class BackendRegistration(DataModel):
    """One engine of a pool as the operator last saw it."""

    name: str
    url: str
    healthy: bool
    max_model_len: int | None = None


class LLMPoolRegistration(DataModel):
    """The engines of a pool; replaces what the gateway knew of it."""

    namespace: str
    name: str
    spec: LLMPoolSpec
    backends: tuple[BackendRegistration, ...]


class JobState(DataModel):
    """What the operator may change in a submitted job."""

    suspended: bool = False
    priority: int = 0
    stages: Stages | None = None
    """For leases from now on; unset: as before."""
    cancelled: str | None = None
    """Reason; ends the job: queued work is dropped and leases are revoked."""
