"""The level-triggered loop: whatever happened, look at the object again and do what is missing.

Changes only say which objects to look at. Nothing is carried from one look to the next but a
`Memory` that may be lost, so a restart at any moment goes on where the state is.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from rollout_client.backoff import backoff
from rollout_operator.apply import Applier
from rollout_operator.cache import Cache, Key, key_of
from rollout_operator.errors import Missing, OperatorError, Unavailable
from rollout_operator.memory import Memory
from rollout_operator.observe import Observer
from rollout_operator.plan import Owner, Plan
from rollout_operator.ports import Batch, Cluster, EngineProbe, Gateway
from rollout_operator.sites import Site
from rollout_operator.workqueue import WorkQueue

log = logging.getLogger(__name__)

_WORKERS = 8
_RESYNC_SECONDS = 300.0
_FIRST_RETRY_SECONDS = 0.2
_LAST_RETRY_SECONDS = 30.0
_LAST_RECONNECT_SECONDS = 2.0
_SETTLE_PASSES = 4
_OUTAGE_FAILURES = 5
"""Failures in a row at which an outage is worth a line for each object that it concerns."""


def utc_now() -> datetime:
    """The time by the operator's clock."""
    return datetime.now(UTC)


def _reconnects() -> Iterator[float]:
    return backoff(_FIRST_RETRY_SECONDS, _LAST_RECONNECT_SECONDS)


class Reconciler:
    """Keeps every job and pool of a cluster as its spec says.

    Args:
        cluster: Where they are declared.
        gateway: Where jobs are queued.
        probe: Looks at inference servers.
        site: Where pods are placed.
        progress_seconds: Least time between two writes of a status for its counters alone.
        progress_share: The same as a share of the time that the job has run.
        now: The clock.
    """

    def __init__(
        self,
        cluster: Cluster,
        gateway: Gateway,
        probe: EngineProbe,
        site: Site,
        *,
        progress_seconds: float = 1.0,
        progress_share: float = 0.0,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._cluster = cluster
        self._now = now
        self._cache = Cache()
        self._queue: WorkQueue[Key] = WorkQueue()
        self._memories: dict[Key, Memory] = {}
        self._failures: defaultdict[Key, int] = defaultdict(int)
        self._observer = Observer(
            self._cache, gateway, probe, site, progress_seconds, progress_share
        )
        self._applier = Applier(cluster, gateway, self._cache)

    async def run(self) -> None:
        """Reconcile until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._watch())
                tasks.create_task(self._resync())
                for _ in range(_WORKERS):
                    tasks.create_task(self._work())
        finally:
            self._queue.close()

    async def _watch(self) -> None:
        waits, connected = _reconnects(), True
        while True:
            try:
                async for batch in self._cluster.watch():
                    if not connected:
                        log.info("the cluster answers again")
                    waits, connected = _reconnects(), True
                    self._take(batch)
            except OperatorError as error:
                if connected:
                    log.warning("waiting for the cluster: %s", error)
                connected = False
                self._forget_registrations()
            await asyncio.sleep(next(waits))

    def _take(self, batch: Batch) -> None:
        for key in self._cache.take(batch):
            self._queue.add(key)

    def _forget_registrations(self) -> None:
        """A gateway that was away may have forgotten its engines."""
        for memory in self._memories.values():
            memory.registration = None

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(_RESYNC_SECONDS)
            for key in self._cache.owners():
                self._queue.add(key)

    async def _work(self) -> None:
        while True:
            key = await self._queue.take()
            try:
                await self._reconcile(key)
            finally:
                self._queue.done(key)

    async def _reconcile(self, key: Key) -> None:
        try:
            requeue_after = await self._settle(key)
        except Missing:
            requeue_after = _FIRST_RETRY_SECONDS
        except Exception as error:
            requeue_after = self._failed(key, error)
        else:
            self._failures.pop(key, None)
        if requeue_after is not None:
            self._queue.add_after(key, requeue_after)

    async def _settle(self, key: Key) -> float | None:
        """Plan and apply until nothing is left to do; return when to look again."""
        for _ in range(_SETTLE_PASSES):
            owner = self._cache.get(key)
            if owner is None or not isinstance(owner, Owner):
                self._memories.pop(key, None)
                return None
            plan = await self._pass(owner)
            if plan.is_empty or plan.release_finalizer or plan.delete_self:
                return plan.requeue_after
        return _FIRST_RETRY_SECONDS

    async def _pass(self, owner: Owner) -> Plan:
        memory, now = self._memory_of(owner), self._now()
        plan = await self._observer.plan(owner, memory, now)
        if plan.summary:
            log.info("%s %s/%s: %s", *key_of(owner), plan.summary)
        await self._applier.apply(owner, plan, memory, now)
        return plan

    def _memory_of(self, owner: Owner) -> Memory:
        """A new object of the same name starts with no memory."""
        key, uid = key_of(owner), owner.metadata.uid
        if key not in self._memories or self._memories[key].uid != uid:
            self._memories[key] = Memory(uid)
        return self._memories[key]

    def _failed(self, key: Key, error: Exception) -> float:
        self._failures[key] += 1
        count = self._failures[key]
        if not isinstance(error, OperatorError):
            log.exception("a defect while reconciling %s %s/%s", *key, exc_info=error)
        elif count == _OUTAGE_FAILURES or not isinstance(error, Unavailable):
            log.warning("%s %s/%s: %s", *key, error)
        backoff: float = _FIRST_RETRY_SECONDS * 2 ** min(count - 1, 10)
        return min(backoff, _LAST_RETRY_SECONDS)
