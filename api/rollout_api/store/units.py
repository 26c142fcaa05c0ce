"""Rows of units, as the decisions see them."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, select, update

from rollout_api.core.units import FINAL_STATES, RetryPolicy, Unit, UnitState
from rollout_api.store.schema import jobs, units
from rollout_api.store.writer import Transaction
from rollout_crds.result import Stage

_UNIT_FIELDS = tuple(field.name for field in fields(Unit))
_UNIT_COLUMNS = tuple(units.c[name] for name in _UNIT_FIELDS)
_SAVED_FIELDS = tuple(name for name in _UNIT_FIELDS if name not in {"work_id", "stage"})
FINAL_STATE_NAMES = tuple(sorted(FINAL_STATES))


@dataclass(frozen=True, slots=True)
class JobRules:
    """What the queue needs to know of a job."""

    uid: str
    namespace: str
    name: str
    pool: str | None
    policy: RetryPolicy
    suspended: bool
    cancelled: str | None


@dataclass(frozen=True, slots=True)
class StoredUnit:
    """A unit, where it belongs, and the rules of its job."""

    unit: Unit
    group_id: str
    rollout_id: str | None
    job: JobRules


_SELECT_STORED = select(
    *_UNIT_COLUMNS,
    units.c.group_id,
    units.c.rollout_id,
    jobs.c.uid,
    jobs.c.namespace,
    jobs.c.name,
    jobs.c.pool,
    jobs.c.max_attempts,
    jobs.c.backoff_seconds,
    jobs.c.suspended,
    jobs.c.cancelled,
).join_from(units, jobs, jobs.c.uid == units.c.job_uid)
_SELECT_ONE = _SELECT_STORED.where(units.c.work_id == bindparam("key"))
_SAVE = (
    update(units)
    .where(units.c.work_id == bindparam("key"))
    .values({name: bindparam(name) for name in _SAVED_FIELDS})
)


def to_rules(row: Row[*tuple[Any, ...]]) -> JobRules:
    """Read the rules from a row that has the columns of a job."""
    return JobRules(
        uid=row.uid,
        namespace=row.namespace,
        name=row.name,
        pool=row.pool,
        policy=RetryPolicy(row.max_attempts, row.backoff_seconds),
        suspended=row.suspended,
        cancelled=row.cancelled,
    )


def find_unit(connection: Connection, work_id: str) -> StoredUnit | None:
    """Look up one unit."""
    row = connection.execute(_SELECT_ONE, {"key": work_id}).one_or_none()
    return _stored(row) if row is not None else None


def find_units(
    connection: Connection, *conditions: ColumnElement[bool], limit: int | None = None
) -> list[StoredUnit]:
    """Look up units, oldest job first."""
    statement = _SELECT_STORED.where(*conditions).limit(limit)
    return [_stored(row) for row in connection.execute(statement)]


def select_units() -> Select[*tuple[Any, ...]]:
    """A query for units, to be narrowed; `to_unit` reads its rows."""
    return select(*_UNIT_COLUMNS)


def plain_units(connection: Connection, *conditions: ColumnElement[bool]) -> list[Unit]:
    """Look up units without their jobs."""
    return [to_unit(row) for row in connection.execute(select_units().where(*conditions))]


def to_unit(row: Row[*tuple[Any, ...]]) -> Unit:
    """Read a row that starts with the columns of a unit."""
    values = dict(zip(_UNIT_FIELDS, row, strict=False))
    values["stage"] = Stage(values["stage"])
    values["state"] = UnitState(values["state"])
    return Unit(**values)


def save_units(tx: Transaction, changed: Iterable[Unit]) -> None:
    """Write units back."""
    rows: list[dict[str, Any]] = []
    for unit in changed:
        row = {name: getattr(unit, name) for name in _SAVED_FIELDS}
        rows.append({**row, "key": unit.work_id, "state": unit.state.value})
    if rows:
        tx.connection.execute(_SAVE, rows if len(rows) > 1 else rows[0])


def wake_workers(tx: Transaction, job: JobRules, stage: Stage, count: int | None = None) -> None:
    """Tell workers that units of a stage became leasable; None: any number."""
    if count == 0:
        return
    tx.wake(("work", stage.value, "job", job.uid), count)
    if job.pool is not None:
        tx.wake(("work", stage.value, "pool", job.pool), count)


def _stored(row: Row[*tuple[Any, ...]]) -> StoredUnit:
    return StoredUnit(
        unit=to_unit(row),
        group_id=row.group_id,
        rollout_id=row.rollout_id,
        job=to_rules(row),
    )
