"""What a reconciler knows about the surroundings of one object when it plans: plain data."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rollout_crds.control import GatewayJob, LLMPoolRegistration
from rollout_crds.llmpool import LLMPool
from rollout_crds.pod import Pod
from rollout_crds.reasons import Reason
from rollout_crds.rolloutpool import RolloutPool
from rollout_operator.sites import Site

RETRY_UNREADABLE_SECONDS = 30.0
RETRY_UNAVAILABLE_SECONDS = 2.0


@dataclass(frozen=True)
class Refusal:
    """Why the gateway did not take a job."""

    reason: Reason
    message: str
    generation: int
    time: datetime

    def retry_after(self, generation: int, now: datetime) -> float | None:
        """Seconds until it makes sense to try again; None: not before the spec changes."""
        if generation != self.generation:
            return 0.0
        if self.reason is Reason.INVALID_SPEC:
            return None
        unavailable = self.reason is Reason.GATEWAY_UNAVAILABLE
        pause = RETRY_UNAVAILABLE_SECONDS if unavailable else RETRY_UNREADABLE_SECONDS
        return max(0.0, pause - (now - self.time).total_seconds())


@dataclass(frozen=True)
class JobObserved:
    """Around a RolloutJob."""

    site: Site
    pods: tuple[Pod, ...] = ()
    """Those that the job controls."""
    llm_pool: LLMPool | None = None
    """The one that `spec.llm.poolRef` names."""
    rollout_pool: RolloutPool | None = None
    """The one that `spec.poolRef` names."""
    gateway_job: GatewayJob | None = None
    """None: the gateway does not know the job."""
    gateway_error: str | None = None
    """The gateway does not answer, and why."""
    refusal: Refusal | None = None
    """Of the last submission."""
    progress_due: bool = True
    """The last write of the status is long enough ago to write one for counters alone."""


@dataclass(frozen=True)
class RolloutPoolObserved:
    """Around a RolloutPool."""

    site: Site
    pods: tuple[Pod, ...] = ()


@dataclass(frozen=True)
class ProbeResult:
    """What one look at an inference server gave."""

    url: str
    models: tuple[tuple[str, int | None], ...] = ()
    """Names of the models that it serves, with the longest context of each in tokens."""
    error: str | None = None
    """Why it gave no good answer."""
    timed_out: bool = False


@dataclass(frozen=True)
class BackendHealth:
    """An inference server as the last probes found it."""

    state: Literal["healthy", "unreachable", "model_not_served"]
    message: str = ""
    """Why it is not healthy, with the remedy."""
    max_model_len: int | None = None
    failing_since: datetime | None = None
    """Time of the first probe of the present run of failures."""
    timeouts: int = 0
    """Probes in a row that a healthy backend answered too late."""


@dataclass(frozen=True)
class LLMPoolObserved:
    """Around an LLMPool."""

    site: Site
    pods: tuple[Pod, ...] = ()
    health: tuple[tuple[str, BackendHealth], ...] = ()
    """URL and health of each backend that was probed."""
    registration: LLMPoolRegistration | None = None
    """The last one that the gateway took, unless it may have forgotten it."""

    def health_of(self, url: str) -> BackendHealth | None:
        """The health of a backend, if it was probed."""
        return dict(self.health).get(url)
