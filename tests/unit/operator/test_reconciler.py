"""The loop around the plans: what it reads, what it writes, and what it does when that fails."""

import asyncio
import logging
import time

import pytest

from rollout_crds.reasons import ConditionType
from rollout_operator.errors import Refused, Unavailable
from rollout_operator.reconciler import Reconciler
from tests.unit.operator.factories import (
    NOW,
    SITE,
    gateway_job,
    make_endpoint_pool,
    make_job,
    running,
    status_of,
)
from tests.unit.operator.fakes import FakeCluster, FakeGateway, FakeProbe

URL = "http://engine:8000"


class World:
    def __init__(self):
        self.cluster, self.gateway, self.probe = FakeCluster(), FakeGateway(), FakeProbe()
        self.reconciler = Reconciler(
            self.cluster, self.gateway, self.probe, SITE, progress_seconds=0.0
        )

    def condition(self, kind, name="demo", resource="RolloutJob"):
        return status_of(self.cluster.objects[resource, "default", name], kind)

    def run_pods(self):
        pods = [o for (kind, _, _), o in self.cluster.objects.items() if kind == "Pod"]
        self.cluster.declare(*running(tuple(pods)))

    async def until(self, holds, seconds=5.0):
        deadline = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < deadline, "did not happen in time"
            await asyncio.sleep(0.005)


@pytest.fixture
async def world():
    world = World()
    task = asyncio.create_task(world.reconciler.run())
    yield world
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def test_a_declared_job_is_submitted_staffed_and_started(world):
    world.cluster.declare(make_endpoint_pool(URL), make_job(meta={"finalizers": []}))
    await world.until(lambda: len(world.cluster.names("Pod")) == 3)
    assert world.cluster.objects["RolloutJob", "default", "demo"].metadata.finalizers
    world.run_pods()
    await world.until(lambda: world.condition(ConditionType.PROGRESSING)[0] == "True")
    assert "uid-demo" in world.gateway.jobs
    assert world.gateway.pools["default", "model"].backends[0].healthy


async def test_nothing_is_written_while_nothing_changes(world):
    world.cluster.declare(make_endpoint_pool(URL), make_job())
    await world.until(lambda: len(world.cluster.names("Pod")) == 3)
    world.run_pods()
    await world.until(lambda: world.condition(ConditionType.PROGRESSING)[0] == "True")
    before = len(world.cluster.writes)
    world.cluster.break_watches()
    await asyncio.sleep(1.5)
    assert world.cluster.writes[before:] == []


async def test_progress_is_followed_to_the_end(world):
    world.cluster.declare(make_endpoint_pool(URL), make_job())
    await world.until(lambda: "uid-demo" in world.gateway.jobs)
    world.gateway.jobs["uid-demo"] = gateway_job(finished=4, complete=True)
    await world.until(lambda: world.condition(ConditionType.SUCCEEDED)[0] == "True")
    await world.until(lambda: world.cluster.names("Pod") == [])


async def test_a_deleted_job_is_purged_and_released(world):
    world.gateway.jobs["uid-demo"] = gateway_job()
    world.cluster.declare(make_job(meta={"deletion_timestamp": NOW}))
    await world.until(lambda: world.cluster.names("RolloutJob") == [])
    assert world.gateway.jobs == {}


async def test_a_refused_submission_is_stated_and_not_repeated_at_once(world):
    world.gateway.refuse = Refused("no such file", "TaskSourceUnreadable")
    world.cluster.declare(make_job())
    wanted = ("False", "TaskSourceUnreadable")
    await world.until(lambda: world.condition(ConditionType.ACCEPTED) == wanted)
    world.gateway.refuse = None
    await asyncio.sleep(0.3)
    assert world.gateway.jobs == {}


async def test_a_gateway_that_fails_at_a_submission_is_named_and_tried_again(world):
    world.gateway.refuse = Unavailable("HTTP status 500")
    world.cluster.declare(make_job())
    wanted = ("Unknown", "GatewayUnavailable")
    await world.until(lambda: world.condition(ConditionType.ACCEPTED) == wanted)
    world.gateway.refuse = None
    await world.until(lambda: world.condition(ConditionType.ACCEPTED)[0] == "True")


async def test_an_unavailable_cluster_is_waited_for_with_one_line_and_no_traceback(caplog):
    caplog.set_level(logging.INFO, "rollout_operator")
    world = World()
    world.cluster.down = True
    task = asyncio.create_task(world.reconciler.run())
    await asyncio.sleep(1.0)
    world.cluster.down = False
    world.cluster.declare(make_job())
    await world.until(lambda: "uid-demo" in world.gateway.jobs)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    about = [r for r in caplog.records if "cluster" in r.message]
    assert [r.message for r in about] == [
        "waiting for the cluster: connection refused",
        "the cluster answers again",
    ]
    assert all(record.exc_info is None for record in caplog.records)


async def test_a_gateway_that_goes_away_and_comes_back_costs_nothing(world):
    world.cluster.declare(make_endpoint_pool(URL), make_job())
    await world.until(lambda: len(world.cluster.names("Pod")) == 3)
    world.gateway.down = True
    await asyncio.sleep(1.2)
    assert world.condition(ConditionType.ACCEPTED)[0] == "True"
    assert len(world.cluster.names("Pod")) == 3
    world.gateway.jobs["uid-demo"] = gateway_job(finished=4, complete=True)
    world.gateway.down = False
    await world.until(lambda: world.condition(ConditionType.SUCCEEDED)[0] == "True")


async def test_a_broken_watch_makes_engines_register_again(world):
    world.cluster.declare(make_endpoint_pool(URL))
    await world.until(lambda: world.gateway.registered == 1)
    world.cluster.break_watches()
    await world.until(lambda: world.gateway.registered == 2)


async def test_objects_deleted_while_the_watch_was_broken_are_noticed(world):
    world.cluster.declare(make_job())
    await world.until(lambda: len(world.cluster.names("Pod")) == 3)
    del world.cluster.objects["Pod", "default", "demo-run-0"]
    world.cluster.break_watches()
    await world.until(lambda: "demo-run-0" in world.cluster.names("Pod"))


async def test_a_defect_in_one_object_does_not_stop_the_others(world, caplog):
    world.gateway.defect_for = "uid-broken"
    world.cluster.declare(make_job("broken"), make_job("fine"))
    await world.until(lambda: "uid-fine" in world.gateway.jobs)
    assert any(
        "defect while reconciling RolloutJob default/broken" in r.message for r in caplog.records
    )


async def test_a_pod_name_taken_by_another_owner_is_an_event_and_the_rest_goes_on(world):
    world.cluster.taken_names = {"demo-init-0"}
    world.cluster.declare(make_job())
    await world.until(lambda: world.cluster.names("Pod") == ["demo-eval-0", "demo-run-0"])
    await world.until(lambda: world.condition(ConditionType.ACCEPTED)[0] == "True")
    messages = [e.message for e in world.cluster.events if e.type == "Warning"]
    assert messages[0] == "pod `demo-init-0` exists and belongs to another owner"
    await asyncio.sleep(1.0)
    tries = world.cluster.writes.count(("create", "demo-init-0"))
    assert 2 <= tries <= 6


async def test_a_pool_change_is_seen_by_the_jobs_that_use_it(world):
    world.cluster.declare(make_job())
    waiting = ("False", "WaitingForLLMPool")
    await world.until(lambda: world.condition(ConditionType.PROGRESSING) == waiting)
    world.run_pods()
    world.cluster.declare(make_endpoint_pool(URL))
    await world.until(lambda: world.condition(ConditionType.PROGRESSING)[0] == "True")
