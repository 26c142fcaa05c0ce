"""What holds for every job, whatever is observed around it."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from rollout_crds.meta import ObjectMeta, OwnerReference
from rollout_crds.pod import Container, Pod, PodSpec, PodStatus
from rollout_crds.reasons import ConditionType, Reason
from rollout_operator.observed import JobObserved, Refusal
from rollout_operator.plan import FINALIZER
from rollout_operator.plan_job import plan_job
from rollout_operator.pods import stage_pods
from tests.unit.operator.factories import (
    NOW,
    SITE,
    after,
    gateway_job,
    make_job,
    ready_pool,
    settle,
    status_of,
)

PHASES = st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"])
TERMINAL = {"True", "False"}

jobs = st.builds(
    lambda run, suspended, active, waiting, ttl, shared, finalizers, deleted: make_job(
        stages={"run": {"replicas": run}},
        suspended=suspended,
        activeDeadlineSeconds=active,
        preRunningDeadlineSeconds=waiting,
        ttlSecondsAfterFinished=ttl,
        poolRef={"name": "warm"} if shared else None,
        meta={"finalizers": finalizers, "deletion_timestamp": deleted},
    ),
    run=st.integers(0, 3),
    suspended=st.booleans(),
    active=st.none() | st.integers(1, 50),
    waiting=st.none() | st.integers(1, 50),
    ttl=st.none() | st.integers(0, 50),
    shared=st.booleans(),
    finalizers=st.sampled_from([[], [FINALIZER], ["example.com/x", FINALIZER]]),
    deleted=st.sampled_from([None, None, None, NOW]),
)
known_jobs = st.none() | st.builds(
    gateway_job,
    finished=st.integers(0, 4),
    complete=st.booleans(),
    failed_groups=st.integers(0, 4),
)
refusals = st.none() | st.sampled_from(
    [
        Refusal(Reason.INVALID_SPEC, "x", 1, NOW),
        Refusal(Reason.TASK_SOURCE_UNREADABLE, "x", 1, NOW),
    ]
)
times = st.lists(st.integers(0, 40), min_size=1, max_size=6)


@st.composite
def pods_of(draw, job):
    """Some of the wanted pods, some surplus ones, in any phase."""
    wanted = stage_pods(job, make_job(stages={"run": {"replicas": 5}}).spec.stages, SITE)
    chosen = draw(st.lists(st.sampled_from(wanted), unique_by=lambda pod: pod.metadata.name))
    return tuple(
        pod.model_copy(update={"status": PodStatus(phase=draw(PHASES), start_time=NOW)})
        for pod in chosen
    )


@st.composite
def worlds(draw):
    job = draw(jobs)
    observed = JobObserved(
        site=SITE,
        pods=draw(pods_of(job)),
        llm_pool=draw(st.sampled_from([None, ready_pool()])),
        gateway_job=draw(known_jobs),
        gateway_error=draw(st.sampled_from([None, None, "no answer"])),
        refusal=draw(refusals),
        progress_due=draw(st.booleans()),
    )
    if observed.gateway_error:
        observed = replace(observed, gateway_job=None)
    return job, observed


@given(worlds())
def test_an_applied_plan_leaves_nothing_to_do(world):
    job, observed = world
    _, _, plans = settle(job, observed)
    assert plans[-1].is_empty


@given(worlds())
def test_there_are_never_more_pods_than_replicas_want(world):
    job, observed = world
    wanted = {pod.metadata.name for pod in stage_pods(job, job.spec.stages, SITE)}
    for _ in range(4):
        plan = plan_job(job, observed, NOW)
        existing = {pod.metadata.name for pod in observed.pods}
        created = [pod.metadata.name for pod in plan.create_pods]
        assert len(created) == len(set(created))
        assert set(created) <= wanted - existing
        job, observed = after(job, observed, plan)


@given(worlds())
def test_only_pods_that_were_handed_in_as_owned_are_deleted(world):
    job, observed = world
    plan = plan_job(job, observed, NOW)
    assert set(map(id, plan.delete_pods)) <= set(map(id, observed.pods))


@settings(max_examples=200)
@given(worlds(), times, st.lists(known_jobs, min_size=6, max_size=6))
def test_a_terminal_summary_never_changes_back(world, steps, later):
    job, observed = world
    now, summary = NOW, ("", "")
    for step, known in zip(steps, later, strict=False):
        now += timedelta(seconds=step)
        if observed.gateway_error is None:
            observed = replace(observed, gateway_job=known)
        plan = plan_job(job, observed, now)
        job, observed = after(job, observed, plan, now)
        current = status_of(job, ConditionType.SUCCEEDED)
        if summary[0] in TERMINAL:
            assert current == summary
        summary = current


@settings(max_examples=200)
@given(worlds(), times)
def test_transition_times_change_exactly_with_the_status(world, steps):
    job, observed = world
    now = NOW
    for step in steps:
        now += timedelta(seconds=step)
        before = {c.type: c for c in job.status.conditions}
        job, observed = after(job, observed, plan_job(job, observed, now), now)
        for condition in job.status.conditions:
            old = before.get(condition.type)
            if old is not None and old.status == condition.status:
                assert condition.last_transition_time == old.last_transition_time
            else:
                assert condition.last_transition_time == now


@given(worlds())
def test_every_condition_is_stated_at_once_with_its_generation(world):
    job, observed = world
    status = plan_job(job, observed, NOW).status
    if status is not None:
        stated = [condition.type for condition in status.conditions]
        assert stated == ["Accepted", "StagesReady", "Progressing", "Suspended", "Succeeded"]
        assert {c.observed_generation for c in status.conditions} == {job.metadata.generation}


def test_a_pod_of_somebody_else_is_no_pod_of_the_job():
    from rollout_operator.pods import is_owned_by

    reference = OwnerReference(api_version="v1", kind="RolloutJob", name="demo", uid="other")
    pod = Pod(
        metadata=ObjectMeta(name="demo-run-0", owner_references=[reference]),
        spec=PodSpec(containers=[Container(name="x")]),
    )
    assert not is_owned_by(pod, "uid-demo")
