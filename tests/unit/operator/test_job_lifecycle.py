"""A RolloutJob from its first sight to its end."""

from dataclasses import replace

from rollout_crds.control import JobState
from rollout_crds.reasons import ConditionType, Reason
from rollout_crds.taskfile import TaskLineError
from rollout_operator.conditions import find
from rollout_operator.observed import JobObserved, Refusal
from rollout_operator.plan import FINALIZER, PurgeJob, SetJobState, SubmitJob
from rollout_operator.plan_job import POLL_SECONDS, plan_job
from rollout_operator.pods import stage_pods
from tests.unit.operator.factories import (
    NOW,
    SITE,
    gateway_job,
    make_job,
    make_rollout_pool,
    ready_pool,
    running,
    seconds,
    settle,
    status_of,
)

ACCEPTED, SUCCEEDED = ConditionType.ACCEPTED, ConditionType.SUCCEEDED
PROGRESSING, STAGES_READY = ConditionType.PROGRESSING, ConditionType.STAGES_READY


def observed(**changes):
    return JobObserved(**{"site": SITE, "llm_pool": ready_pool(), **changes})


def started(**spec):
    """A job whose stage pods run and that has started, with what is observed around it."""
    job, around, _ = settle(make_job(**spec), observed())
    return settle(job, replace(around, pods=running(around.pods), progress_due=True))[:2]


def test_a_new_job_gets_a_finalizer_before_it_is_handed_to_the_gateway():
    job = make_job(meta={"finalizers": []})
    plan = plan_job(job, observed(), NOW)
    assert plan.acquire_finalizer
    assert plan.gateway == (SubmitJob(plan.gateway[0].submission),)
    assert plan.gateway[0].submission.uid == "uid-demo"
    assert plan.create_pods == ()


def test_an_accepted_job_gets_the_pods_of_its_three_stages():
    job = make_job(stages={"run": {"replicas": 2, "concurrency": 5}})
    plan = plan_job(job, observed(gateway_job=gateway_job()), NOW)
    names = [pod.metadata.name for pod in plan.create_pods]
    assert names == ["demo-init-0", "demo-run-0", "demo-run-1", "demo-eval-0"]
    run = plan.create_pods[1]
    assert run.spec.containers[0].command == ["rollout-stage", "run"]
    assert {e.name: e.value for e in run.spec.containers[0].env} == {
        "ROLLOUT_JOB_UID": "uid-demo",
        "ROLLOUT_CONCURRENCY": "5",
    }
    assert run.spec.node_name == "local"
    assert run.metadata.owner_references[0].uid == "uid-demo"
    assert run.metadata.labels["rollout-operator.dev/job"] == "demo"
    assert run.metadata.labels["rollout-operator.dev/stage"] == "run"


def test_a_job_starts_when_its_pods_run_and_its_llm_pool_is_ready():
    job, around = started()
    assert job.status.start_time == NOW
    assert status_of(job, STAGES_READY) == ("True", "StagePodsRunning")
    assert status_of(job, PROGRESSING) == ("True", "RolloutsRunning")
    assert status_of(job, SUCCEEDED) == ("Unknown", "RolloutsRunning")
    assert plan_job(job, around, NOW).requeue_after == POLL_SECONDS


def test_a_job_without_its_llm_pool_says_which_one_is_missing():
    job, _, plans = settle(make_job(), observed(llm_pool=None))
    condition = find(job.status.conditions, PROGRESSING)
    assert condition.reason == "WaitingForLLMPool"
    assert "LLMPool `model` does not exist in namespace `default`" in condition.message
    assert job.status.start_time is None
    reasons = [event.reason for plan in plans for event in plan.events]
    assert reasons.count("WaitingForLLMPool") == 1


def test_a_completed_job_succeeds_and_its_pods_are_removed():
    job, around = started()
    around = replace(around, gateway_job=gateway_job(finished=4, complete=True))
    plan = plan_job(job, around, NOW + seconds(60))
    assert {pod.metadata.name for pod in plan.delete_pods} == {
        "demo-init-0",
        "demo-run-0",
        "demo-eval-0",
    }
    job, around, _ = settle(job, around, NOW + seconds(60))
    assert status_of(job, SUCCEEDED) == ("True", "Completed")
    assert status_of(job, PROGRESSING) == ("False", "Completed")
    assert status_of(job, STAGES_READY) == ("False", "StagePodsRemoved")
    assert job.status.completion_time == NOW + seconds(60)
    assert job.status.progress.finished == 4
    assert plan_job(job, around, NOW + seconds(60)).requeue_after is None


def test_a_job_with_failed_groups_fails_and_says_how_many():
    job, around = started(samplesPerTask=2, groups={"minimumUsableSamples": 2})
    known = gateway_job(finished=4, complete=True, failed_groups=3)
    job, _, _ = settle(job, replace(around, gateway_job=known))
    condition = find(job.status.conditions, SUCCEEDED)
    assert (condition.status, condition.reason) == ("False", "GroupsFailed")
    assert condition.message == "3 of 4 groups ended with fewer than 2 usable samples"


def test_a_suspended_job_gives_no_leases_and_loses_its_pods():
    job, around = started()
    job = job.model_copy(
        update={
            "spec": job.spec.model_copy(update={"suspended": True}),
            "metadata": job.metadata.model_copy(update={"generation": 2}),
        }
    )
    plan = plan_job(job, around, NOW)
    assert plan.gateway == (
        SetJobState("uid-demo", JobState(suspended=True, stages=job.spec.stages)),
    )
    assert len(plan.delete_pods) == 3
    job, around, _ = settle(job, around)
    assert status_of(job, ConditionType.SUSPENDED) == ("True", "Suspended")
    assert status_of(job, PROGRESSING) == ("False", "Suspended")
    assert job.status.start_time is None


def test_a_resumed_job_is_told_to_the_gateway_and_gets_its_pods_back():
    job, around, _ = settle(make_job(suspended=True), observed(gateway_job=gateway_job()))
    job = job.model_copy(
        update={
            "spec": job.spec.model_copy(update={"suspended": False}),
            "metadata": job.metadata.model_copy(update={"generation": 2}),
        }
    )
    plan = plan_job(job, around, NOW)
    assert plan.gateway == (
        SetJobState("uid-demo", JobState(suspended=False, stages=job.spec.stages)),
    )
    assert len(plan.create_pods) == 3


def test_a_changed_priority_is_told_to_the_gateway_once():
    job, around = started()
    job = job.model_copy(
        update={
            "spec": job.spec.model_copy(update={"priority": 7}),
            "metadata": job.metadata.model_copy(update={"generation": 2}),
        }
    )
    _, _, plans = settle(job, around)
    states = [action.state for plan in plans for action in plan.gateway]
    assert states == [JobState(priority=7, stages=job.spec.stages)]


def test_the_active_deadline_ends_the_job_at_the_gateway_too():
    job, around = started(activeDeadlineSeconds=100)
    assert plan_job(job, around, NOW + seconds(99.5)).requeue_after == 0.5
    plan = plan_job(job, around, NOW + seconds(100))
    assert plan.gateway == (SetJobState("uid-demo", JobState(cancelled="DeadlineExceeded")),)
    job, around, _ = settle(job, around, NOW + seconds(100))
    assert status_of(job, SUCCEEDED) == ("False", "DeadlineExceeded")
    assert around.pods == ()


def test_a_cancellation_that_did_not_reach_the_gateway_is_repeated():
    job, around = started(activeDeadlineSeconds=100)
    late = NOW + seconds(100)
    away = replace(around, gateway_job=None, gateway_error="no answer")
    job, _, plans = settle(job, away, late)
    assert [plan.gateway for plan in plans] == [(), ()]
    assert plans[-1].requeue_after == POLL_SECONDS
    plan = plan_job(job, replace(around, pods=()), late)
    assert plan.gateway == (SetJobState("uid-demo", JobState(cancelled="DeadlineExceeded")),)


def test_a_job_that_cannot_start_in_time_is_given_up():
    job, around, _ = settle(make_job(preRunningDeadlineSeconds=30), observed(llm_pool=None))
    assert plan_job(job, around, NOW + seconds(29.9)).gateway == ()
    job, _, _ = settle(job, around, NOW + seconds(30))
    assert status_of(job, SUCCEEDED) == ("False", "PreRunningDeadlineExceeded")


def test_a_started_job_has_met_its_pre_running_deadline():
    job, around = started(preRunningDeadlineSeconds=30)
    plan = plan_job(job, replace(around, llm_pool=None), NOW + seconds(300))
    assert find(plan.status.conditions, SUCCEEDED).status == "Unknown"


def test_a_finished_job_deletes_itself_after_its_time_to_live():
    job, around = started(ttlSecondsAfterFinished=60)
    around = replace(around, gateway_job=gateway_job(finished=4, complete=True))
    job, around, _ = settle(job, around)
    plan = plan_job(job, around, NOW + seconds(20))
    assert not plan.delete_self
    assert plan.requeue_after == 40
    assert plan_job(job, around, NOW + seconds(60)).delete_self


def test_deletion_purges_the_gateway_before_the_finalizer_goes():
    job = make_job(meta={"deletion_timestamp": NOW})
    plan = plan_job(job, observed(gateway_job=gateway_job()), NOW)
    assert plan.gateway == (PurgeJob("uid-demo"),)
    assert plan.release_finalizer
    assert plan.status is None


def test_deletion_waits_for_the_gateway_but_not_for_ever():
    job = make_job(meta={"deletion_timestamp": NOW})
    away = observed(gateway_error="no answer")
    waiting = plan_job(job, away, NOW + seconds(299))
    assert waiting.is_empty
    assert waiting.requeue_after is not None
    assert plan_job(job, away, NOW + seconds(300)).release_finalizer


def test_a_deleted_job_held_by_another_finalizer_is_left_alone():
    job = make_job(meta={"deletion_timestamp": NOW, "finalizers": ["example.com/other"]})
    assert plan_job(job, observed(gateway_job=gateway_job()), NOW).is_empty


def test_a_job_of_another_controller_is_left_alone():
    job = make_job(managedBy="kueue.x-k8s.io/multikueue", meta={"finalizers": []})
    assert plan_job(job, observed(), NOW) == plan_job(job, observed(gateway_job=gateway_job()), NOW)
    assert plan_job(job, observed(), NOW).is_empty


def test_an_unreadable_task_source_is_stated_and_tried_again_later():
    refusal = Refusal(Reason.TASK_SOURCE_UNREADABLE, "no such file: /tasks.jsonl", 1, NOW)
    around = observed(refusal=refusal)
    job, _, plans = settle(make_job(), around, NOW + seconds(10))
    condition = find(job.status.conditions, ACCEPTED)
    assert (condition.status, condition.reason) == ("False", "TaskSourceUnreadable")
    assert condition.message == "no such file: /tasks.jsonl"
    assert plans[-1].requeue_after == 20
    assert plans[0].create_pods == ()
    assert any(event.type == "Warning" for event in plans[0].events)
    assert isinstance(plan_job(job, around, NOW + seconds(30)).gateway[0], SubmitJob)


def test_an_invalid_spec_is_not_tried_again_until_it_changes():
    refusal = Refusal(Reason.INVALID_SPEC, "unknown handler", 1, NOW)
    job, around, plans = settle(make_job(), observed(refusal=refusal))
    assert plans[-1].requeue_after is None
    assert plan_job(job, around, NOW + seconds(3600)).gateway == ()
    changed = job.model_copy(update={"metadata": job.metadata.model_copy(update={"generation": 2})})
    assert isinstance(plan_job(changed, around, NOW).gateway[0], SubmitJob)


def test_a_load_that_broke_off_is_gone_on_with():
    job, around = started()
    half = replace(around, gateway_job=gateway_job(total=2, loaded=False))
    assert [type(action) for action in plan_job(job, half, NOW).gateway] == [SubmitJob]
    waiting = replace(half, refusal=Refusal(Reason.GATEWAY_UNAVAILABLE, "gone", 1, NOW))
    assert plan_job(job, waiting, NOW).gateway == ()


def test_a_job_that_ends_while_its_tasks_are_loaded_is_cancelled_and_loaded_to_the_end():
    spec = {"preRunningDeadlineSeconds": 5}
    half = observed(gateway_job=gateway_job(total=2, loaded=False))
    actions = plan_job(make_job(**spec), half, NOW + seconds(6)).gateway
    assert [type(action) for action in actions] == [SetJobState, SubmitJob]


def test_refused_tasks_are_named_while_the_others_go_on():
    tasks = tuple(
        TaskLineError(line=line, field="prompt", message="Field required") for line in range(1, 8)
    )
    known = gateway_job().model_copy(update={"invalid_tasks": tasks})
    job, _, _ = settle(make_job(), observed(gateway_job=known))
    condition = find(job.status.conditions, ACCEPTED)
    assert (condition.status, condition.reason) == ("True", "SomeTasksInvalid")
    assert condition.message.startswith("7 tasks refused, the others go on: line 1: prompt:")
    assert condition.message.endswith("and 2 more")


def test_a_refused_line_without_a_field_is_named_by_its_number():
    tasks = (TaskLineError(line=3, field="", message="not valid JSON"),)
    known = gateway_job().model_copy(update={"invalid_tasks": tasks})
    job, _, _ = settle(make_job(), observed(gateway_job=known))
    message = find(job.status.conditions, ACCEPTED).message
    assert message == "1 task refused, the others go on: line 3: not valid JSON"


def test_an_unreachable_gateway_does_not_take_back_what_was_accepted():
    job, around = started()
    away = replace(around, gateway_job=None, gateway_error="connection refused")
    plan = plan_job(job, away, NOW)
    assert plan.is_empty
    assert plan.requeue_after == POLL_SECONDS


def test_a_new_job_with_an_unreachable_gateway_waits():
    plan = plan_job(make_job(), observed(gateway_error="connection refused"), NOW)
    assert plan.gateway == ()
    accepted = find(plan.status.conditions, ACCEPTED)
    assert (accepted.status, accepted.reason) == ("Unknown", "GatewayUnavailable")
    assert accepted.message == "connection refused"


def test_a_job_that_the_gateway_has_lost_is_handed_over_again():
    job, around = started()
    plan = plan_job(job, replace(around, gateway_job=None), NOW)
    assert isinstance(plan.gateway[0], SubmitJob)


def test_a_job_in_a_shared_pool_gets_no_pods_of_its_own():
    around = observed(gateway_job=gateway_job())
    job, around, plans = settle(make_job(poolRef={"name": "warm"}), around)
    assert all(plan.create_pods == () for plan in plans)
    message = find(job.status.conditions, STAGES_READY).message
    assert message == "RolloutPool `warm` does not exist: create it"
    job, _, _ = settle(job, replace(around, rollout_pool=make_rollout_pool()))
    assert find(job.status.conditions, STAGES_READY).message == "RolloutPool `warm` is not ready"


def test_counters_alone_are_not_written_before_they_are_due():
    job, around = started()
    ahead = replace(around, gateway_job=gateway_job(finished=2))
    assert plan_job(job, replace(ahead, progress_due=False), NOW).status is None
    written = plan_job(job, replace(ahead, progress_due=True), NOW).status
    assert written.progress.finished == 2


def test_the_finalizer_is_of_our_domain():
    assert FINALIZER.startswith("rollout-operator.dev/")


def test_pod_names_stay_short_and_distinct_for_long_job_names():
    long, other = "a" * 63, "a" * 62 + "b"
    names = {
        pod.metadata.name
        for name in (long, other)
        for pod in stage_pods(make_job(name), make_job(name).spec.stages, SITE)
    }
    assert len(names) == 6
    assert max(len(name) for name in names) <= 63
