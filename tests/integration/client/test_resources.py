"""Resources in and out of a real gateway."""

import asyncio
import contextlib

import pytest

from rollout_client import (
    AsyncRolloutClient,
    ConditionFailed,
    Invalid,
    NotFound,
    RolloutClient,
    Unavailable,
    WaitTimeout,
)
from rollout_crds.llmpool import LLMPool
from rollout_crds.rolloutjob import RolloutJob
from tests.integration.client.gateway_process import LLM_POOL, GatewayProcess, job

SUCCEEDED = {"type": "Succeeded", "status": "True", "reason": "Completed"}
FAILED = {"type": "Succeeded", "status": "False", "reason": "GroupsFailed", "message": "1 of 2"}
REFUSED = {"type": "Accepted", "status": "False", "reason": "InvalidSpec", "message": "no"}


async def test_an_applied_object_is_read_back_listed_and_deleted(gateway: GatewayProcess) -> None:
    async with AsyncRolloutClient(gateway.url) as client:
        made = await client.apply(job())
        assert made.metadata.uid
        assert await client.get(RolloutJob, "demo") == made
        assert await client.list(RolloutJob) == (made,)
        again = await client.apply(job())
        assert again.metadata.resource_version == made.metadata.resource_version
        await client.delete(RolloutJob, "demo")
        await client.wait_deleted(RolloutJob, "demo", timeout_seconds=5)
        with pytest.raises(NotFound):
            await client.get(RolloutJob, "demo")


async def test_an_immutable_field_is_named(gateway: GatewayProcess) -> None:
    async with AsyncRolloutClient(gateway.url) as client:
        await client.apply(job(samples=2))
        with pytest.raises(Invalid) as caught:
            await client.apply(job(samples=3))
    assert [error.field for error in caught.value.field_errors] == ["spec.samplesPerTask"]


async def test_changes_bring_what_is_newer_and_hold_until_then(gateway: GatewayProcess) -> None:
    async with AsyncRolloutClient(gateway.url) as client:
        first = await client.changes("0", timeout_seconds=0)
        waiting = asyncio.create_task(
            client.changes(first.resource_version, kinds=(LLMPool,), timeout_seconds=20)
        )
        await client.apply(job())
        await client.apply(LLMPool.model_validate(LLM_POOL))
        async with asyncio.timeout(5):
            changes = await waiting
        assert [change.name for change in changes.changed] == ["m"]


async def test_a_wait_ends_when_the_condition_is_true(gateway: GatewayProcess) -> None:
    async with AsyncRolloutClient(gateway.url) as client:
        await client.apply(job())
        waiting = asyncio.create_task(client.wait(RolloutJob, "demo", "Succeeded"))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        await asyncio.to_thread(gateway.set_conditions, "rolloutjobs", "demo", SUCCEEDED)
        async with asyncio.timeout(5):
            done = await waiting
        assert done.status.conditions[0].reason == "Completed"


@pytest.mark.parametrize(
    ("condition", "said"), [(FAILED, "GroupsFailed: 1 of 2"), (REFUSED, "InvalidSpec: no")]
)
async def test_a_wait_for_success_ends_when_it_cannot_come(
    gateway: GatewayProcess, condition: dict[str, str], said: str
) -> None:
    async with AsyncRolloutClient(gateway.url) as client:
        await client.apply(job())
        await asyncio.to_thread(gateway.set_conditions, "rolloutjobs", "demo", condition)
        with pytest.raises(ConditionFailed, match=said):
            await client.wait(RolloutJob, "demo", "Succeeded", timeout_seconds=5)


async def test_a_wait_gives_up_in_time(gateway: GatewayProcess) -> None:
    async with AsyncRolloutClient(gateway.url) as client:
        await client.apply(job())
        with pytest.raises(WaitTimeout, match=r"not reached within 0.3 s"):
            await client.wait(RolloutJob, "demo", "Succeeded", timeout_seconds=0.3)


async def test_requests_outlive_a_restart_of_the_gateway(gateway: GatewayProcess) -> None:
    async with AsyncRolloutClient(gateway.url) as client:
        await client.apply(job())
        gateway.kill()
        reading = asyncio.create_task(client.get(RolloutJob, "demo"))
        await asyncio.sleep(0.3)
        await asyncio.to_thread(gateway.start)
        assert (await reading).metadata.name == "demo"


async def test_patience_is_bounded(gateway: GatewayProcess) -> None:
    gateway.kill()
    async with AsyncRolloutClient(gateway.url, patience_seconds=0.3) as client:
        with pytest.raises(Unavailable, match="no answer from the gateway at unix://"):
            async with asyncio.timeout(5):
                await client.get(RolloutJob, "demo")
    gateway.start()


def test_the_blocking_client_does_the_same(gateway: GatewayProcess) -> None:
    with RolloutClient(gateway.url) as client:
        made = client.apply(job())
        assert client.get(RolloutJob, "demo") == made
        gateway.set_conditions("rolloutjobs", "demo", SUCCEEDED)
        assert client.wait(RolloutJob, "demo", "Succeeded", timeout_seconds=5).status.conditions
        client.delete(RolloutJob, "demo")
        with contextlib.suppress(NotFound):
            client.wait_deleted(RolloutJob, "demo", timeout_seconds=5)
        assert client.list(RolloutJob) == ()
