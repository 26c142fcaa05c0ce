"""A Slurm job as plain data: what is submitted and what is seen of it, whatever the transport.

A job belongs to a pod by the key in its comment, `rollout:BRIDGE:POD-UID`. Nothing else is
remembered of a submission, so a bridge that was killed at any point finds its jobs again.
"""

from dataclasses import dataclass
from datetime import datetime

from rollout_crds.placement import SlurmPlacement

_PREFIX = "rollout"


@dataclass(frozen=True)
class JobKey:
    """Which pod of which bridge a job was submitted for."""

    bridge: str
    pod_uid: str

    @property
    def comment(self) -> str:
        """The key as it stands in the job's comment."""
        return f"{_PREFIX}:{self.bridge}:{self.pod_uid}"


def key_in(comment: str) -> JobKey | None:
    """The key in a comment; None when the job is none of any bridge."""
    prefix, _, rest = comment.partition(":")
    bridge, _, pod_uid = rest.partition(":")
    return JobKey(bridge, pod_uid) if prefix == _PREFIX and bridge and pod_uid else None


@dataclass(frozen=True)
class SlurmJob:
    """A job to submit."""

    name: str
    key: JobKey
    script: str
    output: str
    """File for stdout and stderr."""
    directory: str
    placement: SlurmPlacement
    signal_seconds: int | None = None
    """How long before its time limit the job gets SIGTERM."""


@dataclass(frozen=True)
class JobSeen:
    """A job as Slurm reports it."""

    job_id: int
    key: JobKey
    state: str
    """Base state, such as `PENDING`."""
    reason: str = ""
    exit_status: int = 0
    """As `wait` gives it: the exit code times 256, plus the signal."""
    submitted: datetime | None = None
    started: datetime | None = None
