"""A leased unit of work, as it is shared between the worker's loop and the stage."""

from collections.abc import Callable
from dataclasses import dataclass, field

from rollout_crds.trajectory import StopReason, Trajectory
from rollout_crds.wire import Lease, LeaseProgress


def _nothing(_: StopReason) -> Trajectory | None:
    return None


@dataclass
class Progress:
    """How far it is; the stage writes it, the heartbeat reads it."""

    turns: int = 0
    prompt_tokens: int = 0
    output_tokens: int = 0


@dataclass
class Work:
    """A leased unit of work."""

    lease: Lease
    deadline: float
    """End of its active time, by the event loop's clock in seconds."""
    progress: Progress = field(default_factory=Progress)
    so_far: Callable[[StopReason], Trajectory | None] = _nothing
    """What RUN has recorded, for the report of a failure, with the reason why it stopped."""

    def lease_progress(self) -> LeaseProgress:
        """The progress as the heartbeat reports it."""
        return LeaseProgress(
            work_id=self.lease.work_id,
            attempt=self.lease.attempt,
            turns=self.progress.turns,
            prompt_tokens=self.progress.prompt_tokens,
            output_tokens=self.progress.output_tokens,
        )
