"""What a reconciler wants done: plain data, so that deciding and doing can be tested apart.

`plan_job`, `plan_rollout_pool` and `plan_llm_pool` are pure functions from an object, what was
observed around it and the time to a `Plan`. `apply` is the only writer.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rollout_crds.control import JobState, JobSubmission, LLMPoolRegistration
from rollout_crds.llmpool import LLMPool, LLMPoolStatus
from rollout_crds.meta import Condition
from rollout_crds.pod import Pod
from rollout_crds.reasons import Reason
from rollout_crds.resources import Event
from rollout_crds.rolloutjob import RolloutJob, RolloutJobStatus
from rollout_crds.rolloutpool import RolloutPool, RolloutPoolStatus

FINALIZER = "rollout-operator.dev/gateway"
CONTROLLER = "rollout-operator.dev/rollout-operator"
"""Value of `spec.managedBy` that means this operator, as does none."""

Owner = RolloutJob | RolloutPool | LLMPool
Status = RolloutJobStatus | RolloutPoolStatus | LLMPoolStatus


@dataclass(frozen=True)
class SubmitJob:
    """Hand a job to the gateway."""

    submission: JobSubmission


@dataclass(frozen=True)
class SetJobState:
    """Change a submitted job."""

    uid: str
    state: JobState


@dataclass(frozen=True)
class PurgeJob:
    """Remove a job and its rows from the gateway."""

    uid: str


@dataclass(frozen=True)
class RegisterLLMPool:
    """Tell the gateway a pool's engines."""

    registration: LLMPoolRegistration


@dataclass(frozen=True)
class UnregisterLLMPool:
    """Take a pool's engines from the gateway."""

    namespace: str
    name: str


GatewayAction = SubmitJob | SetJobState | PurgeJob | RegisterLLMPool | UnregisterLLMPool


@dataclass(frozen=True)
class Plan:
    """What to do about one object, in the order in which it is done."""

    acquire_finalizer: bool = False
    gateway: tuple[GatewayAction, ...] = ()
    delete_pods: tuple[Pod, ...] = ()
    create_pods: tuple[Pod, ...] = ()
    status: Status | None = None
    """To write; None when it has not changed."""
    events: tuple[Event, ...] = ()
    release_finalizer: bool = False
    delete_self: bool = False
    """The time to live of a finished job is over."""
    requeue_after: float | None = None
    """Seconds after which to look again even if nothing is reported."""

    @property
    def is_empty(self) -> bool:
        """Nothing is to be done now."""
        return self == Plan(requeue_after=self.requeue_after)

    @property
    def summary(self) -> str:
        """What it does besides routine (status, registration of engines), for the log."""
        actions = [action for action in self.gateway if not isinstance(action, RegisterLLMPool)]
        parts = [type(action).__name__ for action in actions]
        parts += [f"delete pod {pod.metadata.name}" for pod in self.delete_pods]
        parts += [f"create pod {pod.metadata.name}" for pod in self.create_pods]
        parts += ["release finalizer"] if self.release_finalizer else []
        parts += ["delete: its time to live is over"] if self.delete_self else []
        return ", ".join(parts)


def earliest(*delays: float | None) -> float | None:
    """The shortest of some delays, at least 0."""
    known = [max(0.0, delay) for delay in delays if delay is not None]
    return min(known, default=None)


def seconds_until(moment: datetime | None, now: datetime) -> float | None:
    """Seconds from now to a moment; negative when it has passed."""
    return None if moment is None else (moment - now).total_seconds()


_NOTEWORTHY: dict[Reason, str] = {
    Reason.INVALID_SPEC: "Warning",
    Reason.TASK_SOURCE_UNREADABLE: "Warning",
    Reason.SOME_TASKS_INVALID: "Warning",
    Reason.WAITING_FOR_LLM_POOL: "Normal",
    Reason.SUSPENDED: "Normal",
    Reason.ROLLOUTS_RUNNING: "Normal",
    Reason.COMPLETED: "Normal",
    Reason.GROUPS_FAILED: "Warning",
    Reason.DEADLINE_EXCEEDED: "Warning",
    Reason.PRE_RUNNING_DEADLINE_EXCEEDED: "Warning",
    Reason.BACKENDS_HEALTHY: "Normal",
    Reason.BACKENDS_UNREACHABLE: "Warning",
    Reason.MODEL_NOT_SERVED: "Warning",
}


def pod_refused_event(owner: Owner, message: str) -> Event:
    """The event for a pod that the cluster does not take."""
    engine = owner.kind == "LLMPool"
    return Event(
        kind=owner.kind,
        name=owner.metadata.name,
        namespace=owner.metadata.namespace,
        type="Warning",
        reason=Reason.BACKENDS_STARTING if engine else Reason.WAITING_FOR_STAGE_PODS,
        message=message,
    )


def events_of(
    owner: Owner, old: Sequence[Condition], new: Sequence[Condition]
) -> tuple[Event, ...]:
    """One event for each reason that has newly come up and that people act on."""
    known = {condition.reason for condition in old}
    news = {c.reason: c for c in new if c.reason not in known and Reason(c.reason) in _NOTEWORTHY}
    return tuple(_event(owner, condition) for condition in news.values())


def _event(owner: Owner, condition: Condition) -> Event:
    return Event(
        kind=owner.kind,
        name=owner.metadata.name,
        namespace=owner.metadata.namespace,
        type=_NOTEWORTHY[Reason(condition.reason)],
        reason=condition.reason,
        message=condition.message,
    )


def plural(count: int, noun: str) -> str:
    """A count with its noun, such as `1 pod` or `2 pods`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def joined(parts: Iterable[str]) -> str:
    """Clauses as one sentence."""
    return "; ".join(part for part in parts if part)
