"""The queue's transactions: claim, complete, renew, take back. All take the time as an argument."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, bindparam, func, select, update

from rollout_api.core.backends import LeastAssigned
from rollout_api.core.completions import PreparedCompletion
from rollout_api.core.errors import LeaseLostError
from rollout_api.core.revocation import revocation_reason
from rollout_api.core.sharing import Candidate, hand_out
from rollout_api.core.units import (
    Done,
    GaveUp,
    Holder,
    Refused,
    Repeated,
    Unit,
    UnitState,
    complete,
    enqueue,
    expire,
    hand_back,
    holds,
    lease,
    reclaim,
)
from rollout_api.store.llm_pools import find_llm_pool
from rollout_api.store.outcomes import DUE, settle, store_trajectory, succeed
from rollout_api.store.schema import jobs, units
from rollout_api.store.units import (
    find_unit,
    find_units,
    save_units,
    select_units,
    to_unit,
    wake_workers,
)
from rollout_api.store.writer import Transaction
from rollout_crds.control import LLMPoolRegistration
from rollout_crds.result import Stage
from rollout_crds.wire import Heartbeat, LeaseRequest, Revocation, WorkerHello

MOST_AT_ONCE = 500

_SELECT_JOBS = (
    select(jobs.c.uid, jobs.c.priority, jobs.c.llm_pool)
    .where(
        jobs.c.loaded,
        ~jobs.c.suspended,
        jobs.c.cancelled.is_(None),
        jobs.c.finished < jobs.c.rollouts,
    )
    .order_by(jobs.c.created_at, jobs.c.uid)
)
_SELECT_JOB = _SELECT_JOBS.where(jobs.c.uid == bindparam("scope"))
_SELECT_POOL_JOBS = _SELECT_JOBS.where(jobs.c.pool == bindparam("scope"))
_SELECT_QUEUED = (
    select_units()
    .where(
        units.c.job_uid == bindparam("uid"),
        units.c.stage == bindparam("of_stage"),
        units.c.state == UnitState.QUEUED.value,
    )
    .order_by(units.c.position)
    .limit(bindparam("count"))
)
_COUNT_ASSIGNED = (
    select(units.c.backend, func.count())
    .join_from(units, jobs, jobs.c.uid == units.c.job_uid)
    .where(
        units.c.due_at.is_not(None),
        units.c.backend.is_not(None),
        jobs.c.llm_pool == bindparam("pool"),
    )
    .group_by(units.c.backend)
)


@dataclass(frozen=True, slots=True)
class Claim:
    """A unit that was just leased, and the LLMPool as it was then."""

    unit: Unit
    job_uid: str
    pool: LLMPoolRegistration | None


class _Claimer:
    """Takes units for one lease request."""

    def __init__(self, tx: Transaction, request: LeaseRequest, now: float, until: float) -> None:
        self._tx = tx
        self._request = request
        self._now = now
        self._until = until
        self._pools: dict[str, tuple[LLMPoolRegistration | None, LeastAssigned]] = {}
        self.claims: list[Claim] = []

    def take(self, job_uid: str, llm_pool: str, count: int) -> int:
        pool, backends = None, None
        if self._request.stage is Stage.RUN:
            pool, backends = self._backends(llm_pool)
            if not backends:
                return 0
        holder = Holder(self._request.worker, self._request.incarnation)
        claimed = [
            lease(unit, holder, backends.assign() if backends else None, self._now, self._until)
            for unit in self._queued(job_uid, count)
        ]
        save_units(self._tx, claimed)
        self.claims += [Claim(unit, job_uid, pool) for unit in claimed]
        return len(claimed)

    def _queued(self, job_uid: str, count: int) -> list[Unit]:
        values = {"uid": job_uid, "of_stage": self._request.stage.value, "count": count}
        return [to_unit(row) for row in self._tx.connection.execute(_SELECT_QUEUED, values)]

    def _backends(self, llm_pool: str) -> tuple[LLMPoolRegistration | None, LeastAssigned]:
        if llm_pool not in self._pools:
            pool = find_llm_pool(self._tx.connection, llm_pool)
            healthy = [b.name for b in pool.backends if b.healthy] if pool is not None else []
            assigned = _assigned(self._tx.connection, llm_pool) if healthy else {}
            heap = LeastAssigned({name: assigned.get(name, 0) for name in healthy})
            self._pools[llm_pool] = pool, heap
        return self._pools[llm_pool]


def claim(
    tx: Transaction, request: LeaseRequest, rotation: int, now: float, lease_seconds: float
) -> list[Claim]:
    """Lease up to `capacity` units to a worker."""
    statement = _SELECT_JOB if request.job_uid else _SELECT_POOL_JOBS
    scope = request.job_uid or request.pool
    rows = tx.connection.execute(statement, {"scope": scope}).all()
    claimer = _Claimer(tx, request, now, now + lease_seconds)
    llm_pools = {row.uid: row.llm_pool for row in rows}
    hand_out(
        request.capacity,
        [Candidate(row.uid, row.priority) for row in rows],
        rotation,
        lambda uid, count: claimer.take(uid, llm_pools[uid], count),
    )
    if claimer.claims:
        tx.wake(DUE)
    return claimer.claims


def complete_unit(tx: Transaction, prepared: PreparedCompletion, now: float) -> None:
    """Store the end of a lease.

    Raises:
        LeaseLostError: The lease has expired, was revoked, or has another result.
    """
    completion = prepared.completion
    stored = find_unit(tx.connection, completion.work_id)
    if stored is None:
        msg = f"{completion.work_id!r} does not exist (any more); drop this result"
        raise LeaseLostError(msg)
    holder = Holder(completion.worker, completion.incarnation)
    decision = complete(
        stored.unit,
        holder,
        completion.attempt,
        completion.result,
        prepared.digest,
        stored.job.policy,
        now,
    )
    if isinstance(decision, Repeated):
        return
    if isinstance(decision, Refused):
        raise LeaseLostError(decision.message)
    if stored.job.cancelled is not None:
        msg = f"job {stored.job.name!r} was cancelled; drop this result"
        raise LeaseLostError(msg)
    if isinstance(decision, Done):
        succeed(tx, stored, decision, prepared, now)
        return
    of_run = prepared.trajectory if stored.unit.stage is Stage.RUN else None
    if isinstance(decision, GaveUp) and of_run is not None:
        store_trajectory(tx, stored.rollout_id, of_run, None)
    settle(tx, stored, decision, now)


def return_claims(tx: Transaction, claims: Sequence[Claim], now: float) -> None:
    """Queue units again whose lease never reached the worker."""
    for claimed in claims:
        stored = find_unit(tx.connection, claimed.unit.work_id)
        if stored is None or stored.unit != claimed.unit:
            continue
        save_units(tx, [hand_back(stored.unit, now)])
        wake_workers(tx, stored.job, stored.unit.stage, 1)


def renew(
    tx: Transaction, heartbeat: Heartbeat, now: float, lease_seconds: float
) -> list[Revocation]:
    """Renew the leases that the worker holds, and name those that it has to drop."""
    ids = [item.work_id for item in heartbeat.leases]
    found = {
        stored.unit.work_id: stored
        for stored in find_units(tx.connection, units.c.work_id.in_(ids))
    }
    holder = Holder(heartbeat.worker, heartbeat.incarnation)
    renewed: list[str] = []
    revoked: list[Revocation] = []
    for item in heartbeat.leases:
        stored = found.get(item.work_id)
        cancelled = stored is not None and stored.job.cancelled is not None
        if stored is not None and not cancelled and holds(stored.unit, holder, item.attempt):
            renewed.append(item.work_id)
            continue
        reason = revocation_reason(
            stored.unit.state if stored is not None else None,
            cancelled=cancelled,
            suspended=stored is not None and stored.job.suspended,
        )
        revoked.append(Revocation(work_id=item.work_id, attempt=item.attempt, reason=reason))
    if renewed:
        statement = update(units).where(units.c.work_id.in_(renewed))
        tx.connection.execute(statement, {"due_at": now + lease_seconds})
    return revoked


def reclaim_from_earlier(tx: Transaction, hello: WorkerHello, now: float) -> None:
    """Take back what earlier incarnations of a worker hold."""
    lost = find_units(
        tx.connection,
        units.c.due_at.is_not(None),
        units.c.state == UnitState.LEASED.value,
        units.c.worker == hello.worker,
        units.c.incarnation != hello.incarnation,
    )
    for stored in lost:
        settle(tx, stored, reclaim(stored.unit, stored.job.policy, now), now)


def advance(tx: Transaction, now: float) -> int:
    """Expire leases and end backoffs that are due; says how many, at most `MOST_AT_ONCE`."""
    due = find_units(tx.connection, units.c.due_at <= now, limit=MOST_AT_ONCE)
    for stored in due:
        if stored.unit.state is UnitState.LEASED:
            settle(tx, stored, expire(stored.unit, stored.job.policy, now), now)
        else:
            save_units(tx, [enqueue(stored.unit, now)])
            wake_workers(tx, stored.job, stored.unit.stage, 1)
    return len(due)


def renew_all(tx: Transaction, now: float, lease_seconds: float) -> None:
    """Give every lease its full time again: after a stop of ours that workers could not bridge."""
    statement = update(units).where(
        units.c.due_at.is_not(None), units.c.state == UnitState.LEASED.value
    )
    tx.connection.execute(statement, {"due_at": now + lease_seconds})


def next_due(connection: Connection) -> float | None:
    """When the next lease expires or the next backoff ends."""
    return connection.execute(
        select(func.min(units.c.due_at)).where(units.c.due_at.is_not(None))
    ).scalar()


def _assigned(connection: Connection, llm_pool: str) -> dict[str, int]:
    rows = connection.execute(_COUNT_ASSIGNED, {"pool": llm_pool})
    return {name: count for name, count in rows}
