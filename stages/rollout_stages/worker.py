"""The loop of a stage worker: lease while there is room, renew, run, complete.

One task per lease, one heartbeat for all of them. A finished unit keeps its lease, and is renewed,
until the gateway has taken the result or said that the lease is lost: a gateway that is away for a
while costs time, not results.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable
from dataclasses import dataclass, field

from rollout_client.errors import GatewayError
from rollout_crds.result import Stage
from rollout_crds.wire import (
    Completion,
    HandedBack,
    Heartbeat,
    Lease,
    LeaseRequest,
    Revocation,
    StageResult,
    WorkerHello,
)
from rollout_stages.execution import execute
from rollout_stages.persistence import PersistentGateway, RetryTiming
from rollout_stages.ports import Gateway, StageRunner
from rollout_stages.work import Work

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WorkerIdentity:
    """Who asks for which work."""

    worker: str
    incarnation: str
    stage: Stage
    concurrency: int
    job_uid: str | None = None
    pool: str | None = None


@dataclass(frozen=True)
class Timing:
    """Waiting times in seconds."""

    poll: float = 20.0
    """How long the gateway may hold a request for work."""
    idle_heartbeat: float = 5.0
    """Between heartbeats while nothing is leased."""
    retry: RetryTiming = field(default_factory=RetryTiming)
    stop_grace: float = 8.0
    """For ending what is running when the worker is told to stop."""
    last_words: float = 1.0
    """For handing back what does not end in that time."""


class _Active:
    """A lease and the task that works on it."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.execution: asyncio.Task[StageResult] | None = None
        self.dropped: str | None = None
        self.lost = False

    def drop(self, reason: str, *, lost: bool = False) -> None:
        """Stop working on it; nothing happens to a unit whose result is there already."""
        self.dropped, self.lost = reason, self.lost or lost
        if self.execution is not None:
            self.execution.cancel(reason)


class Worker:
    """A stage worker.

    Args:
        gateway: Where work comes from.
        stage: What is done with it.
        identity: Who asks for which work.
        timing: Waiting times.
    """

    def __init__(
        self,
        gateway: Gateway,
        stage: StageRunner,
        identity: WorkerIdentity,
        timing: Timing | None = None,
    ) -> None:
        self._gateway = gateway
        self._stage = stage
        self._identity = identity
        self._timing = timing or Timing()
        self._persistent = PersistentGateway(gateway, self._timing.retry)
        self._active: dict[tuple[str, int], _Active] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Event()
        self._leased = asyncio.Event()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then hand back what is running."""
        heartbeat = asyncio.create_task(self._heartbeats())
        try:
            await _first_of(stop.wait(), self._lease_and_work(), heartbeat)
        finally:
            await self._hand_back()
            heartbeat.cancel()
            await asyncio.gather(heartbeat, return_exceptions=True)

    async def _lease_and_work(self) -> None:
        hello = WorkerHello(worker=self._identity.worker, incarnation=self._identity.incarnation)
        await self._persistent.hello(hello)
        while True:
            await self._wait_for_room()
            for lease in await self._persistent.lease(self._lease_request):
                self._start(lease)

    async def _wait_for_room(self) -> None:
        while len(self._active) >= self._identity.concurrency:
            self._room.clear()
            await self._room.wait()

    def _lease_request(self) -> LeaseRequest:
        me = self._identity
        return LeaseRequest(
            worker=me.worker,
            incarnation=me.incarnation,
            stage=me.stage,
            job_uid=me.job_uid,
            pool=me.pool,
            capacity=me.concurrency - len(self._active),
            wait_seconds=self._timing.poll,
        )

    def _start(self, lease: Lease) -> None:
        deadline = asyncio.get_running_loop().time() + lease.active_deadline_seconds
        active = _Active(Work(lease, deadline))
        self._active[lease.work_id, lease.attempt] = active
        _log.info("%s attempt %d: leased", lease.work_id, lease.attempt)
        self._leased.set()
        task = asyncio.create_task(self._work(active))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _work(self, active: _Active) -> None:
        lease = active.work.lease
        try:
            result = await self._result(active)
            if not active.lost:
                await self._persistent.complete(self._completion(lease, result))
        finally:
            del self._active[lease.work_id, lease.attempt]
            self._room.set()

    async def _result(self, active: _Active) -> StageResult:
        active.execution = asyncio.create_task(execute(self._stage, active.work))
        try:
            return await active.execution
        except asyncio.CancelledError:
            if active.dropped is None:
                raise
            return HandedBack(reason=active.dropped)

    def _completion(self, lease: Lease, result: StageResult) -> Completion:
        return Completion(
            worker=self._identity.worker,
            incarnation=self._identity.incarnation,
            work_id=lease.work_id,
            attempt=lease.attempt,
            result=result,
        )

    async def _heartbeats(self) -> None:
        clock = asyncio.get_running_loop().time
        last = clock()
        while True:
            self._leased.clear()
            wait = last + self._heartbeat_interval() - clock()
            if wait > 0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._leased.wait(), wait)
                continue
            last = clock()
            if not self._active:
                continue
            try:
                reply = await self._gateway.heartbeat(self._heartbeat())
            except GatewayError as error:
                _log.warning("heartbeat: %s", error)
                continue
            for revocation in reply.revoked:
                self._revoke(revocation)

    def _heartbeat_interval(self) -> float:
        intervals = (active.work.lease.lease_seconds / 3 for active in self._active.values())
        return min(intervals, default=self._timing.idle_heartbeat)

    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(
            worker=self._identity.worker,
            incarnation=self._identity.incarnation,
            leases=tuple(active.work.lease_progress() for active in self._active.values()),
        )

    def _revoke(self, revocation: Revocation) -> None:
        active = self._active.get((revocation.work_id, revocation.attempt))
        if active is not None:
            active.drop(revocation.reason, lost=revocation.reason == "lost")

    async def _hand_back(self) -> None:
        for active in self._active.values():
            active.drop("the worker stops")
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=self._timing.stop_grace)
            for patience in (self._timing.last_words, 0.0):
                for task in late:
                    task.cancel()
                if late:
                    _, late = await asyncio.wait(late, timeout=patience)


async def _first_of(
    stopped: Awaitable[object], leasing: Awaitable[None], heartbeat: asyncio.Task[None]
) -> None:
    """Return when stopped; raise what ended either of the loops."""
    ending = [asyncio.ensure_future(stopped), asyncio.ensure_future(leasing)]
    try:
        done, _ = await asyncio.wait({*ending, heartbeat}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
    for task in done:
        task.result()
