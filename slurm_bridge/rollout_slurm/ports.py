"""What the bridge needs from the world: Slurm's controller, and the cluster that declares pods."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rollout_crds.pod import Pod, PodStatus
from rollout_crds.resources import ChangedObject, Event
from rollout_slurm.job import JobSeen, SlurmJob


class SlurmControl(Protocol):
    """Slurm's controller; every method may raise the errors of `rollout_slurm.errors`."""

    @property
    def requests(self) -> int:
        """Requests to the controller so far."""
        ...

    async def jobs(self) -> tuple[JobSeen, ...]:
        """All jobs of this user that some bridge submitted, those that ended lately included."""
        ...

    async def submit(self, job: SlurmJob) -> int:
        """Submit a job and return its id."""
        ...

    async def cancel(self, job_ids: Sequence[int]) -> None:
        """Cancel jobs; those that have ended or are unknown are fine."""
        ...

    async def aclose(self) -> None:
        """Let go of connections."""
        ...


@dataclass(frozen=True)
class Batch:
    """Changes that came together."""

    changed: tuple[ChangedObject, ...]
    complete: bool
    """It lists all pods there are."""


class Cluster(Protocol):
    """Where pods are declared; every method may raise `GatewayError`."""

    def watch(self) -> AsyncIterator[Batch]:
        """All pods, then their changes, until the connection breaks."""
        ...

    async def write_status(self, pod: Pod, status: PodStatus) -> Pod | None:
        """Replace a pod's status; None when the pod is gone."""
        ...

    async def post_event(self, event: Event) -> None:
        """Record an event for people."""
        ...
