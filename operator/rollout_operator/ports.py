"""What the reconciler needs from the world, as Protocols: a cluster, the gateway, the engines.

The cluster is where resources are declared and pods run; the embedded one is the gateway's store
with a local node. Every method may raise the errors of `rollout_operator.errors`.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from rollout_crds.control import GatewayJob, JobState, JobSubmission, LLMPoolRegistration
from rollout_crds.pod import Pod, PodStatus
from rollout_crds.resources import ChangedObject, Event, Resource
from rollout_operator.observed import ProbeResult
from rollout_operator.plan import Owner, Status


@dataclass(frozen=True)
class Batch:
    """Changes that came together."""

    changed: tuple[ChangedObject, ...]
    complete: bool = False
    """It lists everything there is: what is not in it does not exist."""


class Cluster(Protocol):
    """Where resources are declared and pods run."""

    def watch(self) -> AsyncIterator[Batch]:
        """All objects of our kinds, then their changes, until the connection breaks."""
        ...

    async def create_pod(self, pod: Pod) -> Pod:
        """Create a pod; one of that name with the same owner is fine.

        Raises:
            Refused: There is one of that name that belongs to another owner.
        """
        ...

    async def delete(self, target: Resource) -> None:
        """Ask for the deletion of an object; one that is gone already is fine."""
        ...

    async def write_status(self, target: Resource, status: Status | PodStatus) -> Resource:
        """Replace the status of an object."""
        ...

    async def write_finalizers(self, target: Owner, finalizers: tuple[str, ...]) -> Resource:
        """Replace the finalizers of an object."""
        ...

    async def post_event(self, event: Event) -> None:
        """Record an event for people."""
        ...


class Gateway(Protocol):
    """The owner of jobs, queues and results."""

    async def job(self, uid: str) -> GatewayJob | None:
        """What it knows about a job; None when that is nothing."""
        ...

    async def submit(self, submission: JobSubmission) -> None:
        """Hand a job over; the same one again changes nothing."""
        ...

    async def set_state(self, uid: str, state: JobState) -> None:
        """Suspend, resume, prioritise or cancel a job."""
        ...

    async def purge(self, uid: str) -> None:
        """Remove a job with its rows; an unknown one is fine."""
        ...

    async def register(self, registration: LLMPoolRegistration) -> None:
        """State a pool's engines, replacing those stated before."""
        ...

    async def unregister(self, namespace: str, name: str) -> None:
        """Take a pool's engines away; an unknown pool is fine."""
        ...


class EngineProbe(Protocol):
    """Looks at inference servers."""

    async def probe(self, url: str) -> ProbeResult:
        """Ask a server whether it is alive and what it serves; never raises."""
        ...
