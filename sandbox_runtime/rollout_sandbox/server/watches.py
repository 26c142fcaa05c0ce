"""The main thread's loop: waits for descriptors and calls back, with a tick only while one is due.

Callbacks must be short. Other threads may add and remove descriptors while the loop waits.
"""

import os
import select
import time
from collections.abc import Callable


class Watches:
    """Descriptors and what to call when they can be read."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._tick: Callable[[], bool] | None = None
        self._interval = 0.0
        self._due: float | None = None
        self._woken, self.waking = os.pipe()
        """`waking`: a byte written to it wakes the loop and starts ticking."""
        for end in (self._woken, self.waking):
            os.set_blocking(end, False)
        self.add(self._woken, self._start_ticking)

    def add(self, descriptor: int, callback: Callable[[], None]) -> None:
        """Call `callback` in the main thread whenever `descriptor` can be read."""
        self._callbacks[descriptor] = callback
        self._epoll.register(descriptor, select.EPOLLIN)

    def remove(self, descriptor: int) -> None:
        """Forget a descriptor; one that is not watched does not matter."""
        if self._callbacks.pop(descriptor, None) is not None:
            self._epoll.unregister(descriptor)

    def tick_with(self, tick: Callable[[], bool], interval_seconds: float) -> None:
        """Set what `wake` starts: called at each interval until it returns False."""
        self._tick = tick
        self._interval = interval_seconds

    def wake(self) -> None:
        """Start ticking, if that is not so already; for any thread."""
        if self._due is None:
            os.write(self.waking, b"w")

    def _start_ticking(self) -> None:
        os.read(self._woken, 4096)
        if self._due is None:
            self._due = time.monotonic() + self._interval

    def run(self) -> None:
        """Wait and call back for ever."""
        while True:
            due = self._due
            patience = -1 if due is None else max(0.0, due - time.monotonic())
            for descriptor, _ in self._epoll.poll(patience):
                if callback := self._callbacks.get(descriptor):
                    callback()
            if due is not None and time.monotonic() >= due and self._tick is not None:
                self._due = time.monotonic() + self._interval if self._tick() else None
