"""The queue of keys: each once, never twice at the same time."""

import asyncio

from rollout_operator.workqueue import WorkQueue


async def take_now(queue):
    return await asyncio.wait_for(queue.take(), 1)


async def is_idle(queue):
    try:
        await asyncio.wait_for(queue.take(), 0.02)
    except TimeoutError:
        return True
    return False


async def test_a_key_that_is_added_twice_is_worked_on_once():
    queue = WorkQueue()
    queue.add("a")
    queue.add("a")
    assert await take_now(queue) == "a"
    queue.done("a")
    assert await is_idle(queue)


async def test_a_key_added_during_its_work_comes_again_afterwards():
    queue = WorkQueue()
    queue.add("a")
    await take_now(queue)
    queue.add("a")
    assert await is_idle(queue)
    queue.done("a")
    assert await take_now(queue) == "a"


async def test_the_earliest_of_several_delays_holds():
    queue = WorkQueue()
    queue.add_after("a", 0.01)
    queue.add_after("a", 60)
    assert await take_now(queue) == "a"
    queue.done("a")
    queue.add_after("a", 60)
    queue.add_after("a", 0.01)
    assert await take_now(queue) == "a"
    queue.done("a")
    assert await is_idle(queue)
    queue.close()


async def test_a_key_that_becomes_due_needs_no_later_look():
    queue = WorkQueue()
    queue.add_after("a", 0.03)
    queue.add("a")
    assert await take_now(queue) == "a"
    queue.done("a")
    await asyncio.sleep(0.04)
    assert await is_idle(queue)
