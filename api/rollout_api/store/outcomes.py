"""What the end of a unit means for its group and its rollouts, in the same transaction.

A rollout finishes once: its outcome is only written where there is none, together with its record
and the job's count, which is also the record's sequence number.
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, bindparam, insert, select, update

from rollout_api.core.completions import PreparedCompletion, TrajectorySummary
from rollout_api.core.ids import work_id
from rollout_api.core.records import (
    Ending,
    RolloutIdentity,
    build_record,
    environment_failed,
    gave_up,
)
from rollout_api.core.units import (
    Done,
    GaveUp,
    Requeued,
    Unit,
    UnitState,
    cancel,
)
from rollout_api.store.schema import groups, jobs, records, rollouts, trajectories, units
from rollout_api.store.units import (
    JobRules,
    StoredUnit,
    plain_units,
    save_units,
    select_units,
    to_unit,
    wake_workers,
)
from rollout_api.store.writer import Transaction
from rollout_crds.result import Failure, Outcome, RolloutRecord, Stage
from rollout_crds.wire import EvalDone, InitDone, RunDone

Rows = Sequence[Row[*tuple[Any, ...]]]
DUE = ("due",)

_SELECT_ROLLOUTS = select(
    rollouts.c.rollout_id,
    rollouts.c.group_id,
    rollouts.c.sample_index,
    rollouts.c.provenance_issues,
    groups.c.task_id,
    groups.c.metadata,
).join_from(rollouts, groups, groups.c.group_id == rollouts.c.group_id)
_SELECT_ROLLOUT = _SELECT_ROLLOUTS.where(
    rollouts.c.rollout_id == bindparam("key"), rollouts.c.outcome.is_(None)
)
_COUNT_FINISHED = (
    update(jobs)
    .where(jobs.c.uid == bindparam("key"))
    .values(finished=jobs.c.finished + bindparam("count"))
    .returning(jobs.c.finished)
)
_FINISH = (
    update(rollouts)
    .where(rollouts.c.rollout_id == bindparam("key"))
    .values({name: bindparam(name) for name in ("outcome", "trainable", "reward", "failure")})
)
_NOTE = (
    update(rollouts)
    .where(rollouts.c.job_uid == bindparam("of_job"), rollouts.c.outcome.is_(None))
    .values(failure=bindparam("failure"))
)
_NOTE_FAILURE = _NOTE.where(rollouts.c.rollout_id == bindparam("key"))
_NOTE_FAILURE_OF_GROUP = _NOTE.where(rollouts.c.group_id == bindparam("key"))
_INSERT_RECORD = insert(records)
_INSERT_TRAJECTORY = insert(trajectories)
_UNBLOCK = (
    update(units)
    .where(units.c.state == UnitState.BLOCKED.value, units.c.stage == bindparam("of_stage"))
    .values(state=UnitState.QUEUED.value, queued_at=bindparam("now"))
)
_UNBLOCK_ONE = _UNBLOCK.where(units.c.work_id == bindparam("key"))
_UNBLOCK_GROUP = _UNBLOCK.where(units.c.group_id == bindparam("key"))
_SELECT_UNITS = select_units().where(
    units.c.work_id.in_([bindparam(stage.value) for stage in Stage])
)
_STORE_RUN = (
    update(rollouts)
    .where(rollouts.c.rollout_id == bindparam("key"))
    .values(
        {
            name: bindparam(name)
            for name in (
                "artifact",
                "turns",
                "prompt_tokens",
                "output_tokens",
                "provenance_issues",
            )
        }
    )
)


def settle(tx: Transaction, stored: StoredUnit, decision: Requeued | GaveUp, now: float) -> None:
    """Store what became of a unit that did not succeed."""
    unit = decision.unit
    save_units(tx, [unit])
    if isinstance(decision, GaveUp):
        _give_up(tx, stored, decision, now)
        return
    if decision.failure is not None:
        _note_failure(tx, stored, decision.failure)
    if unit.state is UnitState.BACKOFF:
        tx.wake(DUE)
    else:
        wake_workers(tx, stored.job, unit.stage, 1)


def succeed(
    tx: Transaction, stored: StoredUnit, done: Done, prepared: PreparedCompletion, now: float
) -> None:
    """Store the result of a unit that succeeded and let the next stage begin."""
    save_units(tx, [done.unit])
    result = prepared.completion.result
    if isinstance(result, InitDone):
        environment = result.environment.model_dump_json(by_alias=True)
        tx.connection.execute(
            update(groups).where(groups.c.group_id == stored.group_id),
            {"environment": environment},
        )
        _unblock(tx, stored, Stage.RUN, now)
    elif isinstance(result, RunDone) and prepared.trajectory is not None:
        artifact = result.artifact.model_dump_json(by_alias=True)
        store_trajectory(tx, stored.rollout_id, prepared.trajectory, artifact)
        _unblock(tx, stored, Stage.EVAL, now)
    elif isinstance(result, EvalDone):
        ending = Ending(
            Outcome.SCORED, result.reward, result.reward_components, details=result.details
        )
        finish_rollout(tx, stored, ending)


def store_trajectory(
    tx: Transaction, rollout_id: str | None, trajectory: TrajectorySummary, artifact: str | None
) -> None:
    """Keep what a rollout did, and what is known of it without reading it."""
    tx.connection.execute(
        _STORE_RUN,
        {
            "key": rollout_id,
            "artifact": artifact,
            "turns": trajectory.turns,
            "prompt_tokens": trajectory.prompt_tokens,
            "output_tokens": trajectory.output_tokens,
            "provenance_issues": json.dumps(trajectory.provenance_issues),
        },
    )
    values = {"rollout_id": rollout_id, "body": trajectory.body}
    tx.connection.execute(_INSERT_TRAJECTORY, values)


def finish_rollout(tx: Transaction, stored: StoredUnit, ending: Ending) -> None:
    """Finish the rollout of a unit, unless it has finished."""
    rows = tx.connection.execute(_SELECT_ROLLOUT, {"key": stored.rollout_id}).all()
    finish_rollouts(tx, stored.job, rows, ending)


def unfinished_rollouts(tx: Transaction, job_uid: str, limit: int) -> Rows:
    """Rollouts of a job that have not finished, for `finish_rollouts`."""
    statement = _SELECT_ROLLOUTS.where(
        rollouts.c.job_uid == job_uid, rollouts.c.outcome.is_(None)
    ).limit(limit)
    return tx.connection.execute(statement).all()


def finish_rollouts(tx: Transaction, job: JobRules, rows: Rows, ending: Ending) -> None:
    """Finish rollouts that have not finished, all in the same way."""
    if not rows:
        return
    count = {"key": job.uid, "count": len(rows)}
    last = tx.connection.execute(_COUNT_FINISHED, count).scalar_one()
    finished = [_record(tx, job, row, ending) for row in rows]
    tx.connection.execute(_FINISH, [_outcome_values(record) for record in finished])
    numbered = enumerate(finished, start=last - len(rows) + 1)
    tx.connection.execute(_INSERT_RECORD, [_record_values(n, record) for n, record in numbered])
    tx.wake(("records", job.uid))


def _record(
    tx: Transaction, job: JobRules, row: Row[*tuple[Any, ...]], ending: Ending
) -> RolloutRecord:
    return build_record(
        RolloutIdentity(
            job.namespace,
            job.name,
            job.uid,
            row.group_id,
            row.task_id,
            row.rollout_id,
            row.sample_index,
        ),
        ending,
        _units_of(tx, row.group_id, row.rollout_id),
        json.loads(row.provenance_issues),
        json.loads(row.metadata),
    )


def _outcome_values(record: RolloutRecord) -> dict[str, Any]:
    return {
        "key": record.rollout_id,
        "outcome": record.outcome.value,
        "trainable": record.trainable,
        "reward": record.reward,
        "failure": record.failure.model_dump_json() if record.failure is not None else None,
    }


def _record_values(sequence: int, record: RolloutRecord) -> dict[str, Any]:
    return {
        "job_uid": record.job_uid,
        "sequence": sequence,
        "rollout_id": record.rollout_id,
        "body": record.model_dump_json(by_alias=True, exclude={"trajectory"}),
    }


def _note_failure(tx: Transaction, stored: StoredUnit, failure: Failure) -> None:
    """Show why an unfinished rollout is tried again."""
    statement, key = _NOTE_FAILURE, stored.rollout_id
    if key is None:
        statement, key = _NOTE_FAILURE_OF_GROUP, stored.group_id
    values = {"key": key, "of_job": stored.job.uid, "failure": failure.model_dump_json()}
    tx.connection.execute(statement, values)


def _give_up(tx: Transaction, stored: StoredUnit, decision: GaveUp, now: float) -> None:
    if stored.rollout_id is None:
        _cancel_blocked(tx, stored, units.c.group_id == stored.group_id, now)
        statement = _SELECT_ROLLOUTS.where(
            rollouts.c.job_uid == stored.job.uid,
            rollouts.c.group_id == stored.group_id,
            rollouts.c.outcome.is_(None),
        )
        rows = tx.connection.execute(statement).all()
        finish_rollouts(tx, stored.job, rows, environment_failed(decision.failure))
        return
    next_unit = units.c.work_id == work_id(Stage.EVAL, stored.rollout_id)
    _cancel_blocked(tx, stored, next_unit, now)
    ending = gave_up(decision.failure, policy_error=decision.policy_error)
    finish_rollout(tx, stored, ending)


def _cancel_blocked(
    tx: Transaction, stored: StoredUnit, condition: ColumnElement[bool], now: float
) -> None:
    waiting = plain_units(tx.connection, condition, units.c.state == UnitState.BLOCKED.value)
    save_units(tx, [cancel(unit, now) for unit in waiting])


def _unblock(tx: Transaction, stored: StoredUnit, stage: Stage, now: float) -> None:
    """Queue the units of the next stage, as `core.units.enqueue` does with one."""
    if stored.rollout_id is None:
        statement, key = _UNBLOCK_GROUP, stored.group_id
    else:
        statement, key = _UNBLOCK_ONE, work_id(stage, stored.rollout_id)
    values = {"of_stage": stage.value, "key": key, "now": now}
    wake_workers(tx, stored.job, stage, tx.connection.execute(statement, values).rowcount)


def _units_of(tx: Transaction, group_id: str, rollout_id: str) -> list[Unit]:
    keys = {
        Stage.INIT.value: work_id(Stage.INIT, group_id),
        Stage.RUN.value: work_id(Stage.RUN, rollout_id),
        Stage.EVAL.value: work_id(Stage.EVAL, rollout_id),
    }
    return [to_unit(row) for row in tx.connection.execute(_SELECT_UNITS, keys)]
