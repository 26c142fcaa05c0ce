"""Rows of jobs, and what the operator may change in them."""

import json
from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from rollout_api.core.groups import is_complete
from rollout_api.core.records import Ending
from rollout_api.core.units import UnitState, cancel, hand_back
from rollout_api.store.outcomes import finish_rollouts, unfinished_rollouts
from rollout_api.store.schema import jobs, units
from rollout_api.store.units import (
    FINAL_STATE_NAMES,
    JobRules,
    find_units,
    plain_units,
    save_units,
    to_rules,
    wake_workers,
)
from rollout_api.store.writer import Transaction
from rollout_crds.control import JobState
from rollout_crds.result import Outcome, Stage
from rollout_crds.rolloutjob import Stages

MOST_CANCELLED_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class JobRow:
    """A job as it is stored, without its spec."""

    rules: JobRules
    samples: int
    minimum_usable: int
    loaded: bool
    next_line: int
    invalid_tasks: int
    groups: int
    rollouts: int
    finished: int

    @property
    def complete(self) -> bool:
        """Whether no further record can come."""
        return is_complete(loaded=self.loaded, rollouts=self.rollouts, finished=self.finished)


def find_job(connection: Connection, uid: str) -> JobRow | None:
    """Look up a job."""
    row = connection.execute(select(jobs).where(jobs.c.uid == uid)).one_or_none()
    if row is None:
        return None
    return JobRow(
        rules=to_rules(row),
        samples=row.samples,
        minimum_usable=row.minimum_usable,
        loaded=row.loaded,
        next_line=row.next_line,
        invalid_tasks=row.invalid_tasks,
        groups=row.groups,
        rollouts=row.rollouts,
        finished=row.finished,
    )


def newest_job_uid(connection: Connection, namespace: str, name: str) -> str | None:
    """The uid of the job that was last submitted under a name."""
    statement = (
        select(jobs.c.uid)
        .where(jobs.c.namespace == namespace, jobs.c.name == name)
        .order_by(jobs.c.created_at.desc())
        .limit(1)
    )
    return connection.execute(statement).scalar()


def set_job_state(tx: Transaction, uid: str, state: JobState, now: float) -> JobRow | None:
    """Apply what the operator wants; a cancelled job stays cancelled. None: there is no job."""
    job = find_job(tx.connection, uid)
    if job is None:
        return None
    tx.connection.execute(
        update(jobs).where(jobs.c.uid == uid),
        {
            "suspended": state.suspended,
            "priority": state.priority,
            "cancelled": job.rules.cancelled or state.cancelled,
        },
    )
    if state.stages is not None:
        _set_stages(tx, uid, state.stages)
    if state.suspended and not job.rules.suspended:
        _take_back_all(tx, uid, now)
    elif job.rules.suspended and not state.suspended:
        for stage in Stage:
            wake_workers(tx, job.rules, stage)
    return find_job(tx.connection, uid)


def cancel_some(tx: Transaction, uid: str, now: float) -> bool:
    """Cancel some units and rollouts of a cancelled job; says whether there is more to do."""
    open_units = find_units(
        tx.connection,
        units.c.job_uid == uid,
        units.c.state.not_in(FINAL_STATE_NAMES),
        limit=2 * MOST_CANCELLED_AT_ONCE,
    )
    save_units(tx, [cancel(stored.unit, now) for stored in open_units])
    if open_units:
        return True
    job = find_job(tx.connection, uid)
    rows = unfinished_rollouts(tx, uid, MOST_CANCELLED_AT_ONCE)
    if job is None or not rows:
        return False
    ending = Ending(Outcome.CANCELLED, cancel_reason=job.rules.cancelled)
    finish_rollouts(tx, job.rules, rows, ending)
    return True


def jobs_to_cancel(connection: Connection) -> list[str]:
    """Cancelled jobs that still have unfinished rollouts."""
    statement = select(jobs.c.uid).where(
        jobs.c.cancelled.is_not(None), jobs.c.finished < jobs.c.rollouts
    )
    return list(connection.execute(statement).scalars())


def _set_stages(tx: Transaction, uid: str, stages: Stages) -> None:
    row = select(jobs.c.spec).where(jobs.c.uid == uid)
    spec = json.loads(tx.connection.execute(row).scalar_one())
    spec["stages"] = stages.model_dump(mode="json", by_alias=True)
    tx.connection.execute(update(jobs).where(jobs.c.uid == uid), {"spec": json.dumps(spec)})


def _take_back_all(tx: Transaction, uid: str, now: float) -> None:
    leased = plain_units(
        tx.connection,
        units.c.job_uid == uid,
        units.c.state == UnitState.LEASED.value,
    )
    save_units(tx, [hand_back(unit, now) for unit in leased])
