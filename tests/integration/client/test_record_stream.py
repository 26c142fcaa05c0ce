"""The stream of records: in order, once each, to the end, across restarts."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from rollout_client import AsyncRolloutClient, RolloutClient
from rollout_crds.result import Outcome, RolloutRecord
from rollout_crds.rolloutjob import RolloutJob
from tests.integration.client.gateway_process import GatewayProcess, PlayedWorker, job


@pytest.fixture
async def client(gateway: GatewayProcess) -> AsyncIterator[AsyncRolloutClient]:
    async with AsyncRolloutClient(gateway.url) as client:
        yield client


@pytest.fixture
async def demo(client: AsyncRolloutClient, gateway: GatewayProcess) -> RolloutJob:
    """A job of two tasks with two samples each, handed to the queue."""
    applied = await client.apply(job())
    await asyncio.to_thread(gateway.submit, applied)
    return applied


@pytest.fixture
async def worker(demo: RolloutJob, gateway: GatewayProcess) -> AsyncIterator[PlayedWorker]:
    worker = PlayedWorker(gateway.url, demo.metadata.uid, failing="t1")
    yield worker
    await worker.aclose()


class Reader:
    """Follows the stream of the job."""

    def __init__(self, client: AsyncRolloutClient) -> None:
        self.records: list[RolloutRecord] = []
        self.some = asyncio.Event()
        self._client = client

    async def read(self) -> None:
        async for record in self._client.trajectories("demo"):
            self.records.append(record)
            self.some.set()


async def test_a_followed_stream_brings_each_record_as_it_comes_and_ends_with_the_job(
    client: AsyncRolloutClient, worker: PlayedWorker
) -> None:
    reader = Reader(client)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(reader.read())
        await worker.finish(1)
        await reader.some.wait()
        assert len(reader.records) == 1
        await worker.finish(100)
    records = reader.records
    assert len({record.rollout_id for record in records}) == len(records) == 4
    outcomes = {(record.task_id, record.outcome) for record in records}
    assert outcomes == {("t0", Outcome.SCORED), ("t1", Outcome.INFRA_ERROR)}
    assert all((record.reward is None) == (record.task_id == "t1") for record in records)


async def test_a_stream_goes_on_across_a_restart_of_the_gateway(
    client: AsyncRolloutClient, worker: PlayedWorker, gateway: GatewayProcess
) -> None:
    reader = Reader(client)
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        group.create_task(reader.read())
        await worker.finish(2)
        gateway.kill()
        await asyncio.to_thread(gateway.start)
        await worker.finish(100)
    assert len({record.rollout_id for record in reader.records}) == len(reader.records) == 4


async def test_pages_go_on_where_the_last_one_ended(
    client: AsyncRolloutClient, worker: PlayedWorker
) -> None:
    await worker.finish(100)
    first = await client.record_page("demo", limit=3)
    second = await client.record_page("demo", cursor=first.cursor)
    assert (len(first.records), len(second.records)) == (3, 1)
    assert second.complete
    assert len({r.rollout_id for r in (*first.records, *second.records)}) == 4
    small = [r async for r in client.trajectories("demo", page_size=1)]
    assert len(small) == 4


async def test_without_following_the_stream_ends_at_once(
    client: AsyncRolloutClient, worker: PlayedWorker
) -> None:
    async with asyncio.timeout(5):
        assert [r async for r in client.trajectories("demo", follow=False)] == []
        await worker.finish(1)
        assert len([r async for r in client.trajectories("demo", follow=False)]) == 1


async def test_progress_and_summaries_count_the_same(
    client: AsyncRolloutClient, worker: PlayedWorker
) -> None:
    await worker.finish(100)
    progress = await client.progress("demo")
    rollouts = await client.rollouts("demo")
    assert (progress.finished, progress.outcomes.scored, progress.outcomes.infra_error) == (4, 2, 2)
    assert [r.outcome for r in rollouts].count("scored") == 2


async def test_the_blocking_stream_is_the_same(
    client: AsyncRolloutClient, worker: PlayedWorker, gateway: GatewayProcess
) -> None:
    await worker.finish(100)
    expected = [r async for r in client.trajectories("demo")]

    def read() -> list[RolloutRecord]:
        with RolloutClient(gateway.url) as blocking:
            return list(blocking.trajectories("demo"))

    assert await asyncio.to_thread(read) == expected
