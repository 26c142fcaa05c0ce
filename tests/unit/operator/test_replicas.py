"""Stage pods follow their spec: missing, ended, surplus, changed and spinning ones."""

from rollout_crds.pod import PodStatus
from rollout_operator.observed import RolloutPoolObserved
from rollout_operator.plan_rollout_pool import plan_rollout_pool
from rollout_operator.pods import stage_pods
from rollout_operator.replicas import REPLACE_AFTER, scale
from tests.unit.operator.factories import NOW, SITE, make_job, make_rollout_pool, running, seconds


def pods(**stages):
    job = make_job(stages=stages)
    return stage_pods(job, job.spec.stages, SITE)


def with_status(pod, **status):
    return pod.model_copy(update={"status": PodStatus(**status)})


def names(some):
    return [pod.metadata.name for pod in some]


def test_missing_pods_are_created():
    wanted = pods(run={"replicas": 3})
    assert names(scale(wanted, running(wanted[:2]), NOW).create) == names(wanted[2:])


def test_surplus_pods_are_deleted():
    step = scale(pods(run={"replicas": 1}), running(pods(run={"replicas": 3})), NOW)
    assert names(step.delete) == ["demo-run-1", "demo-run-2"]
    assert step.create == ()


def test_an_ended_pod_is_deleted_first_and_created_after():
    wanted = pods()
    ended = with_status(wanted[1], phase="Failed", start_time=NOW - REPLACE_AFTER)
    step = scale(wanted, (*running((wanted[0], wanted[2])), ended), NOW)
    assert names(step.delete) == ["demo-run-0"]
    assert step.create == ()


def test_a_pod_that_ends_at_once_is_replaced_with_a_delay():
    wanted = pods()
    ended = with_status(wanted[1], phase="Succeeded", start_time=NOW)
    owned = (*running((wanted[0], wanted[2])), ended)
    step = scale(wanted, owned, NOW + seconds(4))
    assert step.delete == ()
    assert step.requeue_after == 6
    assert names(scale(wanted, owned, NOW + seconds(10)).delete) == ["demo-run-0"]


def test_a_pod_of_an_older_spec_is_replaced():
    step = scale(pods(run={"concurrency": 3}), running(pods(run={"concurrency": 2})), NOW)
    assert names(step.delete) == ["demo-run-0"]


def test_a_pod_that_is_being_deleted_still_holds_its_name():
    wanted = pods()
    leaving = wanted[1].model_copy(
        update={"metadata": wanted[1].metadata.model_copy(update={"deletion_timestamp": NOW})}
    )
    step = scale(wanted, (*running((wanted[0], wanted[2])), leaving), NOW)
    assert step.create == ()
    assert step.delete == ()


def test_a_rollout_pool_keeps_its_pods_and_counts_those_that_run():
    pool = make_rollout_pool(stages={"run": {"replicas": 2}})
    plan = plan_rollout_pool(pool, RolloutPoolObserved(SITE), NOW)
    assert names(plan.create_pods) == [
        "warm-pool-init-0",
        "warm-pool-run-0",
        "warm-pool-run-1",
        "warm-pool-eval-0",
    ]
    env = {e.name: e.value for e in plan.create_pods[0].spec.containers[0].env}
    assert env["ROLLOUT_POOL"] == "default/warm"
    some = (*running(plan.create_pods[:3]), plan.create_pods[3])
    status = plan_rollout_pool(pool, RolloutPoolObserved(SITE, some), NOW).status
    assert (status.replicas, status.ready_replicas) == (4, 3)
    assert {c.type: c.status for c in status.conditions} == {
        "StagesReady": "False",
        "Ready": "False",
    }
    every = running(plan.create_pods)
    status = plan_rollout_pool(pool, RolloutPoolObserved(SITE, every), NOW).status
    assert {c.reason for c in status.conditions} == {"StagePodsRunning"}


def test_a_crash_looping_pod_does_not_count_as_running_and_is_named():
    pool = make_rollout_pool()
    plan = plan_rollout_pool(pool, RolloutPoolObserved(SITE), NOW)
    first, *others = running(plan.create_pods)
    first = with_status(first, phase="Running", reason="CrashLoopBackOff", message="exited")
    status = plan_rollout_pool(pool, RolloutPoolObserved(SITE, (first, *others)), NOW).status
    assert status.ready_replicas == 2
    assert "`warm-pool-init-0`: CrashLoopBackOff: exited" in status.conditions[0].message
