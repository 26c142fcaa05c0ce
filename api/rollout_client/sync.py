"""The client for code without an event loop.

Its methods are those of the asynchronous client, wrapped one by one: an event loop in a thread of
its own runs them. There is no second implementation that could drift from the first.
"""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from rollout_client.client import AsyncRolloutClient

P = ParamSpec("P")
R = TypeVar("R")


class _LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="rollout-client", daemon=True
        )
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Run a coroutine there and return its result; an interrupt here cancels it."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def close(self) -> None:
        """End the loop and its thread; closing twice is fine."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _blocking(
    method: Callable[Concatenate[AsyncRolloutClient, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["RolloutClient", P], R]:
    def call(self: "RolloutClient", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._run(lambda client: method(client, *args, **kwargs))

    functools.update_wrapper(call, method)
    return call


def _iterating(
    method: Callable[Concatenate[AsyncRolloutClient, P], AsyncIterator[R]],
) -> Callable[Concatenate["RolloutClient", P], Iterator[R]]:
    def call(self: "RolloutClient", /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        end = object()
        items: list[AsyncIterator[R]] = []

        async def following(client: AsyncRolloutClient) -> R | object:
            if not items:
                items.append(method(client, *args, **kwargs))
            return await anext(items[0], end)

        while (item := self._run(following)) is not end:
            yield item  # type: ignore[misc]

    functools.update_wrapper(call, method)
    return call


class RolloutClient:
    """Client of the gateway; see `AsyncRolloutClient` for the arguments and the methods."""

    def __init__(
        self,
        url: str | None = None,
        *,
        patience_seconds: float = 30.0,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._thread = _LoopThread()
        self._client = AsyncRolloutClient(
            url, patience_seconds=patience_seconds, timeout_seconds=timeout_seconds
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._thread.run(self._client.aclose())
        self._thread.close()

    def _run(self, call: Callable[[AsyncRolloutClient], Coroutine[Any, Any, R]]) -> R:
        return self._thread.run(call(self._client))

    apply = _blocking(AsyncRolloutClient.apply)
    get = _blocking(AsyncRolloutClient.get)
    list = _blocking(AsyncRolloutClient.list)
    delete = _blocking(AsyncRolloutClient.delete)
    changes = _blocking(AsyncRolloutClient.changes)
    wait = _blocking(AsyncRolloutClient.wait)
    wait_deleted = _blocking(AsyncRolloutClient.wait_deleted)
    progress = _blocking(AsyncRolloutClient.progress)
    rollouts = _blocking(AsyncRolloutClient.rollouts)
    events = _blocking(AsyncRolloutClient.events)
    record_page = _blocking(AsyncRolloutClient.record_page)
    trajectories = _iterating(AsyncRolloutClient.trajectories)
