"""What to do so that each pod has one Slurm job and shows how it is: a pure function.

Pods and jobs are compared whole, each time. A job is submitted only for a pod that a list of jobs
newer than the pod's last submission does not show, so nothing is submitted twice however often the
bridge is killed; should two jobs have one pod all the same, all but the first are cancelled.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from rollout_crds.pod import Pod, PodStatus
from rollout_slurm.job import JobSeen
from rollout_slurm.states import is_active, pod_status


@dataclass(frozen=True)
class Refusal:
    """Why the last submission for a pod did not succeed, and when to try again."""

    reason: str
    message: str
    retry_at: datetime
    failures: int = 1


@dataclass(frozen=True)
class Submit:
    """Submit a job for a pod."""

    pod: Pod


@dataclass(frozen=True)
class Cancel:
    """Cancel jobs."""

    job_ids: tuple[int, ...]


@dataclass(frozen=True)
class SetStatus:
    """Write a pod's status."""

    pod: Pod
    status: PodStatus


Action = Submit | Cancel | SetStatus
LOST = "JobLost"


def plan_bridge(
    pods: Iterable[Pod],
    jobs: Iterable[JobSeen],
    refusals: Mapping[str, Refusal],
    *,
    bridge: str,
    now: datetime,
) -> tuple[Action, ...]:
    """Decide what to do.

    Args:
        pods: All pods that are the bridge's to run.
        jobs: All jobs of the bridge that Slurm knows, listed after all that was submitted so far.
        refusals: Submissions that did not succeed, by uid of the pod.
        bridge: Which bridge this is.
        now: The time.
    """
    by_uid = {pod.metadata.uid: pod for pod in pods if pod.metadata.deletion_timestamp is None}
    jobs_of: dict[str, list[JobSeen]] = {}
    for job in sorted(jobs, key=lambda seen: seen.job_id):
        if job.key.bridge == bridge:
            jobs_of.setdefault(job.key.pod_uid, []).append(job)
    actions: list[Action] = []
    if unwanted := tuple(_unwanted(by_uid, jobs_of)):
        actions.append(Cancel(unwanted))
    for uid, pod in by_uid.items():
        status = _status(pod, jobs_of.get(uid, []), refusals.get(uid))
        if status is not None and status != pod.status:
            actions.append(SetStatus(pod, status))
        elif status is None and _may_submit(refusals.get(uid), now):
            actions.append(Submit(pod))
    return tuple(actions)


def _unwanted(pods: Mapping[str, Pod], jobs_of: Mapping[str, list[JobSeen]]) -> Iterable[int]:
    """Active jobs whose pod is gone or has ended, and those that are too many."""
    for uid, jobs in jobs_of.items():
        pod = pods.get(uid)
        kept = None if pod is None or _has_ended(pod) else _job_of(jobs)
        yield from (job.job_id for job in jobs if is_active(job) and job is not kept)


def _job_of(jobs: list[JobSeen]) -> JobSeen:
    """The one that counts: the first that is active, else the last."""
    return next((job for job in jobs if is_active(job)), jobs[-1])


def _status(pod: Pod, jobs: list[JobSeen], refusal: Refusal | None) -> PodStatus | None:
    """The status to show; None for a pod without a job that never had one."""
    if _has_ended(pod):
        return pod.status
    if jobs:
        return pod_status(_job_of(jobs))
    if pod.status.start_time is not None:
        lost = "Slurm no longer knows the job of this pod"
        message = f"{lost}; it last said: {pod.status.message}"
        return pod.status.model_copy(update={"phase": "Failed", "reason": LOST, "message": message})
    if refusal is not None:
        shown = PodStatus(phase="Pending", reason=refusal.reason, message=refusal.message)
        return shown if shown != pod.status else None
    return None


def _may_submit(refusal: Refusal | None, now: datetime) -> bool:
    return refusal is None or refusal.retry_at <= now


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}
