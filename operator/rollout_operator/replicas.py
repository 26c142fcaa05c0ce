"""Which pods to create and delete so that those that exist become those that are wanted.

A pod is replaced when it has ended, when it was built from another spec, or when its owner calls it
stuck; it is deleted first and created once it is gone, so there are never more than wanted. One
that ended right after its start is replaced with a delay, so that a broken program does not spin.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rollout_crds.pod import Pod
from rollout_operator.plan import earliest, seconds_until
from rollout_operator.pods import TEMPLATE_ANNOTATION

REPLACE_AFTER = timedelta(seconds=10)
"""Least time from the start of a pod to its replacement when it ends."""


@dataclass(frozen=True)
class Scaling:
    """The step towards the wanted pods."""

    create: tuple[Pod, ...] = ()
    delete: tuple[Pod, ...] = ()
    requeue_after: float | None = None


def scale(
    wanted: Sequence[Pod],
    owned: Sequence[Pod],
    now: datetime,
    is_stuck: Callable[[Pod], bool] = lambda _: False,
) -> Scaling:
    """The step from the pods that the owner has to those that it wants."""
    by_name = {pod.metadata.name: pod for pod in wanted}
    delete, delays = [], []
    for pod in owned:
        if pod.metadata.deletion_timestamp is not None:
            continue
        due = _removal_due(pod, by_name.get(pod.metadata.name), now, is_stuck)
        if due is None:
            continue
        if due <= now:
            delete.append(pod)
        delays.append(seconds_until(due, now))
    existing = {pod.metadata.name for pod in owned}
    create = tuple(pod for name, pod in by_name.items() if name not in existing)
    return Scaling(create, tuple(delete), earliest(*delays) if not delete else None)


def _removal_due(
    pod: Pod, wanted: Pod | None, now: datetime, is_stuck: Callable[[Pod], bool]
) -> datetime | None:
    if wanted is None or _template(pod) != _template(wanted) or is_stuck(pod):
        return now
    if pod.status.phase in {"Succeeded", "Failed"}:
        started = pod.status.start_time
        return now if started is None else started + REPLACE_AFTER
    return None


def _template(pod: Pod) -> str | None:
    return pod.metadata.annotations.get(TEMPLATE_ANNOTATION)


def ready(wanted: Sequence[Pod], owned: Sequence[Pod]) -> tuple[Pod, ...]:
    """The wanted pods that run."""
    names = {pod.metadata.name for pod in wanted}
    return tuple(pod for pod in owned if pod.metadata.name in names and is_running(pod))


def is_running(pod: Pod) -> bool:
    """Whether the pod's program runs; a reason such as `CrashLoopBackOff` says that it does not."""
    return (
        pod.status.phase == "Running"
        and not pod.status.reason
        and pod.metadata.deletion_timestamp is None
    )


def troubles(owned: Sequence[Pod]) -> list[str]:
    """What keeps pods from running, a clause per pod that says why."""
    return [
        f"pod `{pod.metadata.name}`: {pod.status.reason}: {pod.status.message}"
        for pod in owned
        if pod.status.reason
    ]
