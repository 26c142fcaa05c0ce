"""The conditions of a RolloutJob, one function each: observed facts, never a state machine."""

from datetime import datetime, timedelta

from rollout_crds.control import GatewayJob
from rollout_crds.llmpool import LLMPool
from rollout_crds.progress import JobProgress
from rollout_crds.reasons import ConditionType, Reason
from rollout_crds.rolloutjob import RolloutJob
from rollout_operator.conditions import Fact, find, is_true, restate
from rollout_operator.observed import JobObserved
from rollout_operator.plan import joined, plural
from rollout_operator.pods import stage_pods
from rollout_operator.replicas import ready, troubles

_SHOWN_TASKS = 5


def compute_accepted(job: RolloutJob, observed: JobObserved) -> Fact:
    """Whether the gateway has taken the job."""
    kind = ConditionType.ACCEPTED
    known, refusal = observed.gateway_job, observed.refusal
    if known is not None and known.loaded:
        if known.invalid_tasks:
            return Fact(kind, "True", Reason.SOME_TASKS_INVALID, _refused_tasks(known))
        groups, rollouts = known.progress.groups, known.progress.rollouts
        accepted = f"{plural(groups, 'group')}, {plural(rollouts, 'rollout')}"
        return Fact(kind, "True", Reason.VALID, accepted)
    if refusal is not None and refusal.reason is not Reason.GATEWAY_UNAVAILABLE:
        return Fact(kind, "False", refusal.reason, refusal.message)
    if observed.gateway_error is not None and (old := find(job.status.conditions, kind)):
        return restate(old)
    why = refusal.message if refusal is not None else observed.gateway_error
    return Fact(kind, "Unknown", Reason.GATEWAY_UNAVAILABLE, why or "its tasks are not loaded yet")


def _refused_tasks(known: GatewayJob) -> str:
    shown = [
        ": ".join(filter(None, (f"line {task.line}", task.field, task.message)))
        for task in known.invalid_tasks[:_SHOWN_TASKS]
    ]
    count = max(len(known.invalid_tasks), known.progress.invalid_tasks)
    more = f"and {count - len(shown)} more" if count > len(shown) else ""
    return f"{plural(count, 'task')} refused, the others go on: {joined([*shown, more])}"


def compute_stages_ready(job: RolloutJob, observed: JobObserved, *, wanted: bool) -> Fact:
    """Whether all wanted stage pods run."""
    kind = ConditionType.STAGES_READY
    if not wanted:
        return Fact(kind, "False", Reason.STAGE_PODS_REMOVED, "no stage pods are needed now")
    if job.spec.pool_ref is not None:
        return _shared_stages_ready(job.spec.pool_ref.name, observed)
    pods = stage_pods(job, job.spec.stages, observed.site)
    running = ready(pods, observed.pods)
    counted = f"{len(running)} of {plural(len(pods), 'stage pod')} running"
    if len(running) == len(pods):
        return Fact(kind, "True", Reason.STAGE_PODS_RUNNING, counted)
    why = joined([counted, *troubles(observed.pods)])
    return Fact(kind, "False", Reason.WAITING_FOR_STAGE_PODS, why)


def _shared_stages_ready(name: str, observed: JobObserved) -> Fact:
    kind, pool = ConditionType.STAGES_READY, observed.rollout_pool
    if pool is None:
        message = f"RolloutPool `{name}` does not exist: create it"
        return Fact(kind, "False", Reason.WAITING_FOR_STAGE_PODS, message)
    if is_true(pool.status.conditions, ConditionType.READY):
        return Fact(kind, "True", Reason.STAGE_PODS_RUNNING, f"those of RolloutPool `{name}`")
    message = f"RolloutPool `{name}` is not ready"
    return Fact(kind, "False", Reason.WAITING_FOR_STAGE_PODS, message)


def compute_suspended(job: RolloutJob) -> Fact:
    """Whether `spec.suspended` is in force."""
    if job.spec.suspended:
        return Fact(ConditionType.SUSPENDED, "True", Reason.SUSPENDED)
    return Fact(ConditionType.SUSPENDED, "False", Reason.RESUMED)


def compute_progressing(
    job: RolloutJob, observed: JobObserved, *, accepted: Fact, stages: Fact, succeeded: Fact
) -> Fact:
    """Whether leases are given, or what stands in the way."""
    kind = ConditionType.PROGRESSING
    if succeeded.status != "Unknown":
        return Fact(kind, "False", succeeded.reason)
    if job.spec.suspended:
        return Fact(kind, "False", Reason.SUSPENDED)
    if accepted.status != "True":
        return Fact(kind, "False", accepted.reason, accepted.message)
    if (missing := _llm_pool_trouble(job, observed.llm_pool)) is not None:
        return Fact(kind, "False", Reason.WAITING_FOR_LLM_POOL, missing)
    known = observed.gateway_job
    if stages.status != "True" and not (known is not None and work_was_seen(known.progress)):
        return Fact(kind, "False", stages.reason, stages.message)
    return Fact(kind, "True", Reason.ROLLOUTS_RUNNING)


def _llm_pool_trouble(job: RolloutJob, pool: LLMPool | None) -> str | None:
    name = job.spec.llm.pool_ref.name
    if pool is None:
        return f"LLMPool `{name}` does not exist in namespace `{job.metadata.namespace}`: create it"
    if is_true(pool.status.conditions, ConditionType.READY):
        return None
    why = find(pool.status.conditions, ConditionType.READY)
    return f"LLMPool `{name}`: {why.reason}: {why.message}" if why else f"LLMPool `{name}` is new"


def work_was_seen(progress: JobProgress) -> bool:
    """Whether any lease was given so far."""
    stages = (progress.stages.init, progress.stages.run, progress.stages.eval)
    return any(stage.running or stage.done or stage.failed for stage in stages)


def compute_succeeded(job: RolloutJob, observed: JobObserved, now: datetime) -> Fact:
    """The summary: Unknown while the job runs, then what it ended with, for good."""
    kind = ConditionType.SUCCEEDED
    old = find(job.status.conditions, kind)
    if old is not None and old.status != "Unknown":
        return restate(old)
    known = observed.gateway_job
    if known is not None and known.complete:
        return _result(job, known)
    active, waiting = active_deadline(job), pre_running_deadline(job)
    if active is not None and active <= now:
        message = f"`activeDeadlineSeconds` of {job.spec.active_deadline_seconds} ran out"
        return Fact(kind, "False", Reason.DEADLINE_EXCEEDED, message)
    if waiting is not None and waiting <= now:
        message = f"`preRunningDeadlineSeconds` of {job.spec.pre_running_deadline_seconds} ran out"
        return Fact(kind, "False", Reason.PRE_RUNNING_DEADLINE_EXCEEDED, message)
    return Fact(kind, "Unknown", Reason.ROLLOUTS_RUNNING, "rollouts run")


def _result(job: RolloutJob, known: GatewayJob) -> Fact:
    total = known.usable_groups + known.failed_groups
    if known.failed_groups == 0:
        message = f"{plural(total, 'group')} with all the samples needed"
        return Fact(ConditionType.SUCCEEDED, "True", Reason.COMPLETED, message)
    message = (
        f"{known.failed_groups} of {plural(total, 'group')} ended with fewer than "
        f"{plural(job.spec.groups.minimum_usable_samples, 'usable sample')}"
    )
    return Fact(ConditionType.SUCCEEDED, "False", Reason.GROUPS_FAILED, message)


def active_deadline(job: RolloutJob) -> datetime | None:
    """When the job is ended; none while it has not started or is suspended."""
    seconds, start = job.spec.active_deadline_seconds, job.status.start_time
    if seconds is None or start is None or job.spec.suspended:
        return None
    return start + timedelta(seconds=seconds)


def pre_running_deadline(job: RolloutJob) -> datetime | None:
    """When a job that has not started is given up; counts from its creation or resumption."""
    seconds = job.spec.pre_running_deadline_seconds
    if seconds is None or job.status.start_time is not None or job.spec.suspended:
        return None
    suspended = find(job.status.conditions, ConditionType.SUSPENDED)
    if suspended is not None:
        since = suspended.last_transition_time if suspended.status == "False" else None
    else:
        since = job.metadata.creation_timestamp
    return None if since is None else since + timedelta(seconds=seconds)
