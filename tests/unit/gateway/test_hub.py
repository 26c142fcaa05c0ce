"""Wake-ups are neither lost nor wasted."""

import asyncio
from contextlib import ExitStack

from rollout_api.services.hub import Hub
from rollout_api.store.writer import Wake

WORK = ("work", "run")


async def _wait(hub: Hub, seconds: float = 5.0) -> bool:
    with hub.subscribe(WORK) as subscription:
        return await subscription.wait(seconds)


async def _waiting(hub: Hub, count: int) -> list[asyncio.Task[bool]]:
    tasks = [asyncio.create_task(_wait(hub)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_work_wakes_as_many_as_there_are_units_oldest_first() -> None:
    hub = Hub()
    with hub.subscribe(WORK) as first, hub.subscribe(WORK) as second, hub.subscribe(WORK) as third:
        hub.publish([Wake(WORK, 2)])
        assert [s.woken for s in (first, second, third)] == [True, True, False]
        hub.publish([Wake(WORK, 1)])
        assert third.woken


async def test_without_a_count_all_are_woken() -> None:
    hub = Hub()
    tasks = await _waiting(hub, 4)
    hub.publish([Wake(WORK)])
    assert await asyncio.gather(*tasks) == [True] * 4


async def test_what_is_published_between_looking_and_sleeping_is_not_missed() -> None:
    hub = Hub()
    with hub.subscribe(WORK) as subscription:
        hub.publish([Wake(WORK, 1)])
        assert await subscription.wait(5)
        subscription.take()
        assert not await subscription.wait(0.01)


async def test_a_waiter_that_leaves_unused_passes_its_wake_up_on() -> None:
    hub = Hub()
    stack = ExitStack()
    leaving = stack.enter_context(hub.subscribe(WORK))
    with hub.subscribe(WORK) as staying:
        hub.publish([Wake(WORK, 1)])
        assert (leaving.woken, staying.woken) == (True, False)
        stack.close()
        assert staying.woken


async def test_a_wake_up_that_was_used_is_not_passed_on() -> None:
    hub = Hub()
    stack = ExitStack()
    leaving = stack.enter_context(hub.subscribe(WORK))
    with hub.subscribe(WORK) as staying:
        hub.publish([Wake(WORK, 1)])
        leaving.take()
        stack.close()
        assert not staying.woken


async def test_closing_ends_all_waits_now_and_later() -> None:
    hub = Hub()
    tasks = await _waiting(hub, 3)
    hub.close()
    assert await asyncio.gather(*tasks) == [False] * 3
    assert await _wait(hub) is False
