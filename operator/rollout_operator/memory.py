"""What the operator remembers between two looks at an object; losing it costs a request."""

from dataclasses import dataclass, field
from datetime import datetime

from rollout_crds.control import LLMPoolRegistration
from rollout_operator.observed import BackendHealth, Refusal

REREGISTER_SECONDS = 15.0
"""A gateway that has forgotten its engines learns them again within this time."""


@dataclass
class Memory:
    """About one object."""

    uid: str
    refusal: Refusal | None = None
    registration: LLMPoolRegistration | None = None
    registered_at: datetime | None = None
    health: dict[str, BackendHealth] = field(default_factory=dict)
    """By URL."""
    status_written_at: datetime | None = None

    def fresh_registration(self, now: datetime) -> LLMPoolRegistration | None:
        """The registration, unless it was so long ago that it is repeated."""
        at = self.registered_at
        if at is None or (now - at).total_seconds() >= REREGISTER_SECONDS:
            return None
        return self.registration

    def status_is_older_than(self, seconds: float, now: datetime) -> bool:
        """Whether the status was not written within some seconds."""
        at = self.status_written_at
        return at is None or (now - at).total_seconds() >= seconds
