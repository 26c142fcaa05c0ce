"""Leases for stage workers: long polls, heartbeats and completions."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from time import monotonic

from rollout_api.core.completions import prepare
from rollout_api.services.hub import Hub
from rollout_api.services.live import LiveProgress
from rollout_api.store import queue
from rollout_api.store.database import Database
from rollout_api.store.lease_views import read_leases
from rollout_api.store.queue import Claim
from rollout_api.store.writer import Topic
from rollout_crds.wire import Heartbeat, HeartbeatReply, LeaseRequest, WorkerHello

LARGE_BODY_BYTES = 256 * 1024
"""Completions above this size are parsed in a thread, so that others need not wait."""


class Queue:
    """What stage workers ask for."""

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
        self._rotation = itertools.count()

    async def lease(self, request: LeaseRequest, gone: Callable[[], Awaitable[bool]]) -> list[str]:
        """Lease work, waiting for it while there is none.

        Args:
            request: What the worker wants.
            gone: Tells whether the worker has hung up; what it can not receive any more goes back
                to the queue uncharged.

        Returns:
            The JSON of each `Lease`.
        """
        deadline = monotonic() + request.wait_seconds
        with self._hub.subscribe(*_topics(request)) as subscription:
            claims = await self._claim(request)
            while not claims and await subscription.wait(deadline - monotonic()):
                if await gone():
                    return []
                subscription.take()
                claims = await self._claim(request)
        if claims and await gone():
            await self._return(claims)
            return []
        if not claims:
            return []
        return await self._database.read(
            lambda connection: read_leases(connection, claims, self._lease_seconds)
        )

    async def complete(self, body: bytes) -> None:
        """Store the end of a lease.

        Raises:
            InvalidInputError: The body is not a completion, or not one of the unit's stage.
            LeaseLostError: The worker does not hold the lease any more.
        """
        if len(body) > LARGE_BODY_BYTES:
            prepared = await asyncio.to_thread(prepare, body)
        else:
            prepared = prepare(body)
        await self._database.write(lambda tx: queue.complete_unit(tx, prepared, self._clock()))
        self._live.forget(prepared.completion.work_id)

    async def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        """Renew leases and name those to drop."""
        if not heartbeat.leases:
            return HeartbeatReply()
        self._live.note(heartbeat.leases, self._lease_seconds)
        revoked = await self._database.write(
            lambda tx: queue.renew(tx, heartbeat, self._clock(), self._lease_seconds)
        )
        for item in revoked:
            self._live.forget(item.work_id)
        return HeartbeatReply(revoked=tuple(revoked))

    async def hello(self, hello: WorkerHello) -> None:
        """Take back what earlier incarnations of the worker hold."""
        await self._database.write(lambda tx: queue.reclaim_from_earlier(tx, hello, self._clock()))

    async def _claim(self, request: LeaseRequest) -> list[Claim]:
        rotation = next(self._rotation)
        return await self._database.write(
            lambda tx: queue.claim(tx, request, rotation, self._clock(), self._lease_seconds)
        )

    async def _return(self, claims: list[Claim]) -> None:
        await self._database.write(lambda tx: queue.return_claims(tx, claims, self._clock()))


def _topics(request: LeaseRequest) -> tuple[Topic, ...]:
    kind, scope = ("job", request.job_uid) if request.job_uid else ("pool", request.pool)
    stage = request.stage.value
    return ("work", stage), ("work", stage, kind, scope or "")
