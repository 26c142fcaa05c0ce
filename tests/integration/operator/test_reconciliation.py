"""The operator with the real gateway and node: from a declared job to its end and its deletion."""

import asyncio
import re
import time

import pytest
import pytest_asyncio

from rollout_client.errors import NotFound
from rollout_client.transport import Transport
from rollout_crds.llmpool import LLMPool
from rollout_crds.pod import Pod
from rollout_crds.result import Stage
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.rolloutpool import RolloutPool
from tests.integration.node.processes import RunningNode, is_alive, kill, until
from tests.integration.operator.worker import Worker
from tests.support.stub_llm import stub_llm

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
]
NO_PODS = {"init": {"replicas": 0}, "run": {"replicas": 0}, "eval": {"replicas": 0}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node():
    node = RunningNode()
    try:
        await node.start()
        yield node
    finally:
        await node.close()


@pytest.fixture(scope="module")
def stub():
    with stub_llm() as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(node, stub):
    """A ready LLMPool of the name `model`."""
    await node.client.apply(endpoint_pool("model", stub.url))
    await when(node, LLMPool, "model", condition("Ready", "True"))


def endpoint_pool(name, url):
    spec = {"model": "m", "tokenizer": "t", "endpoints": [{"url": url}]}
    return LLMPool.model_validate({"metadata": {"name": name}, "spec": spec})


def make_job(name, pool="model", **spec):
    task = {"id": "a", "instruction": "1+1?", "grading": {"answer": "2"}}
    return RolloutJob.model_validate(
        {
            "metadata": {"name": name},
            "spec": {
                "tasks": {"inline": [task]},
                "handler": "math",
                "samplesPerTask": 2,
                "llm": {"poolRef": {"name": pool}},
                "sandbox": {"image": "python"},
                **spec,
            },
        }
    )


async def when(node, model, name, wanted, seconds=20):
    """An object once something holds for it."""
    deadline = time.monotonic() + seconds
    while True:
        found = await node.client.get(model, name)
        if wanted(found):
            return found
        assert time.monotonic() < deadline, f"{name} stays {found.status}"
        await asyncio.sleep(0.05)


def condition(kind, status, reason=None):
    def holds(resource):
        return any(
            c.type == kind and c.status == status and reason in {None, c.reason}
            for c in resource.status.conditions
        )

    return holds


async def pods_of(node, job):
    pods = await node.client.list(Pod)
    owned = [pod for pod in pods if pod.metadata.owner_references]
    return {p.metadata.name: p for p in owned if p.metadata.owner_references[0].name == job}


async def pods_when(node, job, wanted, seconds=20):
    deadline = time.monotonic() + seconds
    while True:
        found = await pods_of(node, job)
        if wanted(found):
            return found
        assert time.monotonic() < deadline, f"pods stay {sorted(found)}"
        await asyncio.sleep(0.05)


async def delete(node, job):
    await node.client.delete(RolloutJob, job)
    await node.client.wait_deleted(RolloutJob, job, timeout_seconds=20)


async def test_a_job_runs_to_success_by_its_workers_results(node, model):
    job = await node.client.apply(make_job("succeeds", stages=NO_PODS))
    async with Worker(node.client_url, job.metadata.uid) as worker:
        await worker.prepare()
        leases = await worker.run()
        assert {lease.backend.url for lease in leases} == {
            (await node.client.get(LLMPool, "model")).status.backends[0].url
        }
        await worker.evaluate()
    job = await when(node, RolloutJob, "succeeds", condition("Succeeded", "True", "Completed"))
    assert job.status.progress.outcomes.scored == 2
    assert job.status.start_time <= job.status.completion_time
    assert job.status.observed_generation == 1
    events = await node.client.events(RolloutJob, "succeeds")
    assert "Completed" in {event.reason for event in events}
    await delete(node, "succeeds")


async def test_a_finished_status_is_not_written_again(node, model):
    await node.client.apply(make_job("quiet", stages=NO_PODS, activeDeadlineSeconds=1))
    await when(node, RolloutJob, "quiet", condition("Succeeded", "False", "DeadlineExceeded"))
    await asyncio.sleep(2.5)
    settled = await node.client.get(RolloutJob, "quiet")
    await asyncio.sleep(2.5)
    later = await node.client.get(RolloutJob, "quiet")
    assert later.metadata.resource_version == settled.metadata.resource_version
    assert settled.status.progress.outcomes.cancelled == 2
    await delete(node, "quiet")


async def test_a_job_gets_its_stage_pods_and_follows_their_replicas(node, model):
    await node.client.apply(make_job("scales"))
    pods = await pods_when(node, "scales", lambda found: len(found) == 3)
    assert sorted(pods) == ["scales-eval-0", "scales-init-0", "scales-run-0"]
    await when(node, RolloutJob, "scales", condition("StagesReady", "True"))
    await node.client.apply(make_job("scales", stages={"run": {"replicas": 2}}))
    await pods_when(node, "scales", lambda found: "scales-run-1" in found)
    await node.client.apply(make_job("scales", stages={"run": {"replicas": 0}}))
    await pods_when(node, "scales", lambda found: len(found) == 2)
    await delete(node, "scales")
    assert await pods_of(node, "scales") == {}


async def test_a_pod_deleted_by_hand_comes_back_as_a_new_one(node, model):
    await node.client.apply(make_job("heals"))
    old = (await pods_when(node, "heals", lambda found: len(found) == 3))["heals-run-0"]
    await node.client.delete(Pod, "heals-run-0")

    def replaced(found):
        return "heals-run-0" in found and found["heals-run-0"].metadata.uid != old.metadata.uid

    await pods_when(node, "heals", replaced)
    await delete(node, "heals")


async def test_suspending_removes_the_pods_and_gives_no_lease_until_it_is_resumed(node, model):
    job = await node.client.apply(make_job("pauses", suspended=True))
    await when(node, RolloutJob, "pauses", condition("Suspended", "True"))
    async with Worker(node.client_url, job.metadata.uid) as worker:
        assert await worker.lease(Stage.INIT, wait_seconds=1) == []
        assert await pods_of(node, "pauses") == {}
        await node.client.apply(make_job("pauses", stages=NO_PODS))
        assert len(await worker.lease(Stage.INIT)) == 1
    await when(node, RolloutJob, "pauses", condition("Suspended", "False", "Resumed"))
    await delete(node, "pauses")


async def test_deleting_a_job_purges_it_from_the_gateway(node, model):
    job = await node.client.apply(make_job("purged", stages=NO_PODS))
    await when(node, RolloutJob, "purged", condition("Accepted", "True"))
    path = f"/internal/v1/jobs/{job.metadata.uid}"
    async with Transport(node.client_url) as transport:
        await transport.request("GET", path)
        await delete(node, "purged")
        with pytest.raises(NotFound):
            await transport.request("GET", path)


async def test_a_finished_job_goes_after_its_time_to_live(node, model):
    await node.client.apply(
        make_job("brief", stages=NO_PODS, activeDeadlineSeconds=1, ttlSecondsAfterFinished=1)
    )
    await node.client.wait_deleted(RolloutJob, "brief", timeout_seconds=20)


async def test_an_unreadable_task_source_is_stated_and_starts_nothing(node, model):
    await node.client.apply(make_job("blind", tasks={"uri": "file:///no/such/tasks.jsonl"}))
    wanted = condition("Accepted", "False", "TaskSourceUnreadable")
    job = await when(node, RolloutJob, "blind", wanted)
    accepted = next(c for c in job.status.conditions if c.type == "Accepted")
    assert "/no/such/tasks.jsonl" in accepted.message
    assert await pods_of(node, "blind") == {}
    events = await node.client.events(RolloutJob, "blind")
    assert [(e.type, e.count) for e in events if e.reason == "TaskSourceUnreadable"] == [
        ("Warning", 1)
    ]
    await delete(node, "blind")


async def test_an_llm_pool_follows_the_server_behind_it(node):
    with stub_llm() as running:
        await node.client.apply(endpoint_pool("fickle", running.url))
        pool = await when(node, LLMPool, "fickle", condition("Ready", "True", "BackendsHealthy"))
        assert pool.status.backends[0].max_model_len == 32_768
    pool = await when(node, LLMPool, "fickle", condition("Ready", "False", "BackendsUnreachable"))
    assert re.search("Connection (refused|reset)", pool.status.backends[0].message)
    await node.client.delete(LLMPool, "fickle")
    await node.client.wait_deleted(LLMPool, "fickle", timeout_seconds=20)


async def test_a_server_of_another_model_is_named(node, stub):
    pool = endpoint_pool("wrong", stub.url)
    pool.spec.model = "other"
    await node.client.apply(pool)
    pool = await when(node, LLMPool, "wrong", condition("Ready", "False", "ModelNotServed"))
    assert "serves `m`, not `other`" in pool.status.backends[0].message
    await node.client.delete(LLMPool, "wrong")


async def test_a_job_waits_for_its_llm_pool_and_goes_on_when_it_comes(node, stub):
    await node.client.apply(make_job("patient", pool="late", stages=NO_PODS))
    await when(node, RolloutJob, "patient", condition("Progressing", "False", "WaitingForLLMPool"))
    await node.client.apply(endpoint_pool("late", stub.url))
    await when(node, RolloutJob, "patient", condition("Progressing", "True"))
    await delete(node, "patient")
    await node.client.delete(LLMPool, "late")


async def test_a_warm_pool_serves_jobs_that_refer_to_it(node, model):
    pool = RolloutPool.model_validate({"metadata": {"name": "warm"}, "spec": {}})
    await node.client.apply(pool)
    ready = await when(node, RolloutPool, "warm", condition("Ready", "True"))
    assert (ready.status.replicas, ready.status.ready_replicas) == (3, 3)
    await node.client.apply(make_job("guest", poolRef={"name": "warm"}))
    await when(node, RolloutJob, "guest", condition("StagesReady", "True"))
    assert await pods_of(node, "guest") == {}
    await delete(node, "guest")
    await node.client.delete(RolloutPool, "warm")
    await pods_when(node, "warm", lambda found: found == {})


async def test_a_killed_operator_comes_back_and_finishes_what_was_asked(node, model):
    await node.client.apply(make_job("orphan", stages=NO_PODS))
    await when(node, RolloutJob, "orphan", condition("Accepted", "True"))
    operator = node.static_pod("operator").pid
    kill(operator)
    await until(lambda: not is_alive(operator), 5, "the operator is still there")
    await delete(node, "orphan")


async def test_a_killed_gateway_learns_its_engines_again(node, model):
    job = await node.client.apply(make_job("resumes", stages=NO_PODS))
    async with Worker(node.client_url, job.metadata.uid) as worker:
        await worker.prepare()
        kill(node.static_pod("gateway").pid)
        await when(node, RolloutJob, "resumes", condition("Accepted", "True"))
    async with Worker(node.client_url, job.metadata.uid) as worker:
        deadline = time.monotonic() + 30
        while not (leases := await worker.lease(Stage.RUN)):
            assert time.monotonic() < deadline, "no lease after the restart"
        assert len(leases) == 2
    await delete(node, "resumes")


async def test_a_pod_of_the_same_name_that_somebody_else_made_is_left_alone(node, model):
    foreign = await node.run_pod("clash-run-0", "sleep 600")
    await node.client.apply(make_job("clash"))
    await pods_when(node, "clash", lambda found: len(found) == 2)
    deadline = time.monotonic() + 10
    while not (refused := await warnings_of(node, "clash")):
        assert time.monotonic() < deadline, "no event about the name"
        await asyncio.sleep(0.05)
    assert refused == ["pod `clash-run-0` exists and belongs to another owner: delete it"]
    await delete(node, "clash")
    assert (await node.pod("clash-run-0")).metadata.uid == foreign.metadata.uid
    await node.client.delete(Pod, "clash-run-0")


async def warnings_of(node, job):
    events = await node.client.events(RolloutJob, job)
    return [event.message for event in events if event.type == "Warning"]
