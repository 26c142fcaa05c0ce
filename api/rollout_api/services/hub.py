"""In-process notification: long polls sleep until something they wait for was committed.

A subscriber is registered before it looks for work, so nothing that is published between looking
and sleeping is missed. Work is published with a count and wakes no more waiters than there are
units, oldest first; a waiter that leaves with an unused wake-up passes it on.
"""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rollout_api.store.writer import Topic, Wake


class Subscription:
    """A place in the queues of some topics; use it as a context manager."""

    def __init__(self, hub: "Hub", topics: tuple[Topic, ...]) -> None:
        self.topics = topics
        self._hub = hub
        self._event = asyncio.Event()
        self._counted: Topic | None = None

    def __enter__(self) -> Self:
        self._hub.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._hub.remove(self)
        if self._event.is_set() and self._counted is not None:
            self._hub.publish([Wake(self._counted, 1)])

    @property
    def woken(self) -> bool:
        """Whether a wake-up waits to be taken."""
        return self._event.is_set()

    def wake(self, counted: Topic | None) -> None:
        """Called by the hub."""
        self._counted = counted
        self._event.set()

    async def wait(self, seconds: float) -> bool:
        """Sleep until woken; False when the time is over or the hub is closed.

        The wake-up stays until `take`, so that whoever leaves before looking passes it on.
        """
        if self._hub.closed or seconds <= 0:
            return False
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        return not self._hub.closed

    def take(self) -> None:
        """Use the wake-up: call it right before looking."""
        self._event.clear()


class Hub:
    """Who waits for what; lives in one event loop."""

    def __init__(self) -> None:
        self._waiting: dict[Topic, dict[Subscription, None]] = {}
        self.closed = False

    def subscribe(self, *topics: Topic) -> Subscription:
        """Prepare to wait for any of the topics."""
        return Subscription(self, topics)

    def publish(self, wakes: Iterable[Wake]) -> None:
        """Wake those who wait."""
        for wake in wakes:
            self._publish(wake)

    def close(self) -> None:
        """Let everybody who waits go at once, now and from now on."""
        self.closed = True
        for subscriptions in self._waiting.values():
            for subscription in subscriptions:
                subscription.wake(None)

    def add(self, subscription: Subscription) -> None:
        """Called by the subscription."""
        for topic in subscription.topics:
            self._waiting.setdefault(topic, {})[subscription] = None

    def remove(self, subscription: Subscription) -> None:
        """Called by the subscription."""
        for topic in subscription.topics:
            self._waiting[topic].pop(subscription, None)
            if not self._waiting[topic]:
                del self._waiting[topic]

    def _publish(self, wake: Wake) -> None:
        left = wake.count
        for subscription in self._waiting.get(wake.topic, ()):
            if left == 0:
                return
            if subscription.woken:
                continue
            subscription.wake(wake.topic if left is not None else None)
            left = left - 1 if left is not None else None
