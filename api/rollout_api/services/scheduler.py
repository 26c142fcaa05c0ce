"""What happens by itself: leases expire and backoffs end, each when it is due.

The task sleeps until the next due time in the database, or until a transaction may have set an
earlier one. It holds no state, so a restart changes nothing; only leases get their full time
again, because workers could not renew them meanwhile.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from rollout_api.services.hub import Hub
from rollout_api.services.live import LiveProgress
from rollout_api.store import queue
from rollout_api.store.database import Database
from rollout_api.store.outcomes import DUE

_LONGEST_SLEEP_SECONDS = 60.0
_SHORTEST_SLEEP_SECONDS = 0.05
_RETRY_SECONDS = 1.0

_log = logging.getLogger(__name__)


class Scheduler:
    """The task that advances the queue."""

    def __init__(
        self,
        database: Database,
        hub: Hub,
        live: LiveProgress,
        clock: Callable[[], float],
        lease_seconds: float,
    ) -> None:
        self._database = database
        self._hub = hub
        self._live = live
        self._clock = clock
        self._lease_seconds = lease_seconds

    async def run(self) -> None:
        """Run until cancelled."""
        await self._attempt(self._renew_all)
        while not self._hub.closed:
            with self._hub.subscribe(DUE) as subscription:
                seconds = await self._attempt(self._advance)
                await asyncio.sleep(_SHORTEST_SLEEP_SECONDS)  # many leases, one look
                await subscription.wait(seconds)

    async def _attempt(self, step: Callable[[], Awaitable[float]]) -> float:
        """Run a step; when it fails, say so and look again soon."""
        try:
            return await step()
        except Exception:
            _log.exception("leases do not expire now; trying again")
            return _RETRY_SECONDS

    async def _renew_all(self) -> float:
        await self._database.write(
            lambda tx: queue.renew_all(tx, self._clock(), self._lease_seconds)
        )
        return 0.0

    async def _advance(self) -> float:
        """Do what is due; says how long to sleep."""
        while await self._database.write(lambda tx: queue.advance(tx, self._clock())):
            pass
        self._live.prune()
        due = await self._database.read(queue.next_due)
        wait = _LONGEST_SLEEP_SECONDS if due is None else due - self._clock()
        return min(_LONGEST_SLEEP_SECONDS, max(_SHORTEST_SLEEP_SECONDS, wait))
