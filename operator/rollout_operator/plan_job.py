"""What to do about a RolloutJob: a pure function of the job, its surroundings and the time."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rollout_crds.control import JobState, JobSubmission
from rollout_crds.meta import Condition
from rollout_crds.rolloutjob import RolloutJob, RolloutJobStatus
from rollout_operator.conditions import Fact, merge
from rollout_operator.job_conditions import (
    active_deadline,
    compute_accepted,
    compute_progressing,
    compute_stages_ready,
    compute_succeeded,
    compute_suspended,
    pre_running_deadline,
)
from rollout_operator.observed import JobObserved
from rollout_operator.plan import (
    CONTROLLER,
    FINALIZER,
    GatewayAction,
    Plan,
    PurgeJob,
    SetJobState,
    SubmitJob,
    earliest,
    events_of,
    seconds_until,
)
from rollout_operator.pods import stage_pods
from rollout_operator.replicas import Scaling, scale

POLL_SECONDS = 1.0
"""Between two looks at the counters of a running job."""
POLL_SUSPENDED_SECONDS = 10.0
PURGE_LIMIT = timedelta(minutes=5)
"""Longest time that a gateway that does not answer holds up a deletion."""


@dataclass(frozen=True)
class _Facts:
    accepted: Fact
    stages: Fact
    progressing: Fact
    suspended: Fact
    succeeded: Fact

    @property
    def finished(self) -> bool:
        return self.succeeded.status != "Unknown"

    def conditions(self, job: RolloutJob, now: datetime) -> list[Condition]:
        facts = (self.accepted, self.stages, self.progressing, self.suspended, self.succeeded)
        return merge(job.status.conditions, facts, job.metadata.generation, now)


def plan_job(job: RolloutJob, observed: JobObserved, now: datetime) -> Plan:
    """Decide what to do about a job.

    A job is handed over alone; what the gateway says to it decides what comes next.
    """
    if job.spec.managed_by not in {None, CONTROLLER}:
        return Plan()
    if job.metadata.deletion_timestamp is not None:
        return _plan_deletion(job, observed, now)
    facts = _facts(job, observed, now)
    actions = _gateway_actions(job, observed, facts, now)
    needs_finalizer = FINALIZER not in job.metadata.finalizers
    if any(isinstance(action, SubmitJob) for action in actions):
        return Plan(acquire_finalizer=needs_finalizer, gateway=actions)
    status = _status(job, observed, facts, now)
    scaling = _scaling(job, observed, facts, now)
    return Plan(
        acquire_finalizer=needs_finalizer,
        gateway=actions,
        delete_pods=scaling.delete,
        create_pods=scaling.create,
        status=status if _must_write(job.status, status, observed) else None,
        events=events_of(job, job.status.conditions, status.conditions),
        delete_self=_ttl_is_over(job, status, now),
        requeue_after=_requeue_after(job, observed, status, scaling, now),
    )


def _facts(job: RolloutJob, observed: JobObserved, now: datetime) -> _Facts:
    succeeded = compute_succeeded(job, observed, now)
    accepted = compute_accepted(job, observed)
    wanted = succeeded.status == "Unknown" and not job.spec.suspended
    stages = compute_stages_ready(job, observed, wanted=wanted)
    progressing = compute_progressing(
        job, observed, accepted=accepted, stages=stages, succeeded=succeeded
    )
    if succeeded.status == "Unknown":
        succeeded = replace(
            succeeded, reason=progressing.reason, message=progressing.message or succeeded.message
        )
    return _Facts(accepted, stages, progressing, compute_suspended(job), succeeded)


def _plan_deletion(job: RolloutJob, observed: JobObserved, now: datetime) -> Plan:
    if FINALIZER not in job.metadata.finalizers:
        return Plan()
    deleted = job.metadata.deletion_timestamp
    if observed.gateway_error is None:
        return Plan(gateway=(PurgeJob(job.metadata.uid),), release_finalizer=True)
    if deleted is not None and now - deleted >= PURGE_LIMIT:
        return Plan(release_finalizer=True)
    return Plan(requeue_after=POLL_SECONDS)


def _gateway_actions(
    job: RolloutJob, observed: JobObserved, facts: _Facts, now: datetime
) -> tuple[GatewayAction, ...]:
    if observed.gateway_error is not None:
        return ()
    if observed.gateway_job is None:
        return _submission(job, observed, now) if not facts.finished else ()
    to_load = () if observed.gateway_job.loaded else _submission(job, observed, now)
    state = JobState(suspended=job.spec.suspended, priority=job.spec.priority)
    if facts.finished and not observed.gateway_job.complete:
        cancelled = state.model_copy(update={"cancelled": facts.succeeded.reason.value})
        return (SetJobState(job.metadata.uid, cancelled), *to_load)
    if to_load:
        return to_load
    if job.status.observed_generation != job.metadata.generation and not facts.finished:
        changed = state.model_copy(update={"stages": job.spec.stages})
        return (SetJobState(job.metadata.uid, changed),)
    return ()


def _submission(job: RolloutJob, observed: JobObserved, now: datetime) -> tuple[GatewayAction, ...]:
    meta, refusal = job.metadata, observed.refusal
    if refusal is not None and refusal.retry_after(meta.generation, now) != 0.0:
        return ()
    submission = JobSubmission(
        uid=meta.uid, name=meta.name, namespace=meta.namespace, spec=job.spec
    )
    return (SubmitJob(submission),)


def _scaling(job: RolloutJob, observed: JobObserved, facts: _Facts, now: datetime) -> Scaling:
    accepted = facts.accepted.status == "True"
    if facts.finished or job.spec.suspended or job.spec.pool_ref is not None:
        return scale((), observed.pods, now)
    wanted = stage_pods(job, job.spec.stages, observed.site)
    scaling = scale(wanted, observed.pods, now)
    return scaling if accepted else replace(scaling, create=())


def _status(
    job: RolloutJob, observed: JobObserved, facts: _Facts, now: datetime
) -> RolloutJobStatus:
    known, old = observed.gateway_job, job.status
    return RolloutJobStatus(
        conditions=facts.conditions(job, now),
        observed_generation=job.metadata.generation,
        progress=old.progress if known is None else known.progress,
        start_time=_start_time(job, facts, now),
        completion_time=(old.completion_time or now) if facts.finished else None,
    )


def _start_time(job: RolloutJob, facts: _Facts, now: datetime) -> datetime | None:
    """Suspending stops the clock of the deadline, as it does for a Kubernetes Job."""
    if facts.finished:
        return job.status.start_time
    if job.spec.suspended:
        return None
    started = facts.progressing.status == "True"
    return job.status.start_time or (now if started else None)


def _must_write(old: RolloutJobStatus, new: RolloutJobStatus, observed: JobObserved) -> bool:
    if old.model_copy(update={"progress": new.progress}) != new:
        return True
    return old.progress != new.progress and observed.progress_due


def _ttl_end(job: RolloutJob, status: RolloutJobStatus) -> datetime | None:
    ttl, end = job.spec.ttl_seconds_after_finished, status.completion_time
    return None if ttl is None or end is None else end + timedelta(seconds=ttl)


def _ttl_is_over(job: RolloutJob, status: RolloutJobStatus, now: datetime) -> bool:
    end = _ttl_end(job, status)
    return end is not None and end <= now


def _requeue_after(
    job: RolloutJob,
    observed: JobObserved,
    status: RolloutJobStatus,
    scaling: Scaling,
    now: datetime,
) -> float | None:
    updated = job.model_copy(update={"status": status})
    deadlines = (active_deadline(updated), pre_running_deadline(updated), _ttl_end(job, status))
    if status.completion_time is not None:
        deadlines = (None, None, deadlines[2])
    return earliest(
        _poll_after(job, observed, status, now),
        scaling.requeue_after,
        *(seconds_until(moment, now) for moment in deadlines),
    )


def _poll_after(
    job: RolloutJob, observed: JobObserved, status: RolloutJobStatus, now: datetime
) -> float | None:
    known, refusal = observed.gateway_job, observed.refusal
    if observed.gateway_error is not None:
        return POLL_SECONDS
    if known is not None:
        settled = known.complete and status.progress == job.status.progress
        slow = POLL_SUSPENDED_SECONDS if job.spec.suspended else POLL_SECONDS
        return None if settled else slow
    if status.completion_time is not None:
        return None
    return POLL_SECONDS if refusal is None else refusal.retry_after(job.metadata.generation, now)
