"""Turning a submitted job into groups, rollouts and units, chunk by chunk.

`next_line` moves on in the transaction that stores a chunk, and `loaded` is set last, so a load
that was killed half-way goes on where it stopped, and no unit is leased before all are there.
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from rollout_api.core.compression import compress
from rollout_api.core.ids import group_id, rollout_id, work_id
from rollout_api.core.task_lines import Entry, NumberedTask
from rollout_api.core.units import UnitState
from rollout_api.store.job_rows import JobRow, find_job
from rollout_api.store.llm_pools import pool_key
from rollout_api.store.schema import (
    groups,
    invalid_tasks,
    jobs,
    records,
    rollouts,
    tasks,
    trajectories,
    units,
)
from rollout_api.store.units import wake_workers
from rollout_api.store.writer import Transaction
from rollout_crds.control import JobSubmission
from rollout_crds.result import Stage
from rollout_crds.taskfile import TaskLineError

MOST_INVALID_TASKS_KEPT = 1000
MOST_PURGED_AT_ONCE = 500


def begin_job(tx: Transaction, submission: JobSubmission, now: float) -> JobRow:
    """Create the job's row, unless it is there."""
    known = find_job(tx.connection, submission.uid)
    if known is not None:
        return known
    spec = submission.spec
    namespace = submission.namespace
    tx.connection.execute(
        insert(jobs),
        {
            "uid": submission.uid,
            "namespace": namespace,
            "name": submission.name,
            "spec": spec.model_dump_json(by_alias=True, exclude={"tasks"}),
            "llm_pool": pool_key(namespace, spec.llm.pool_ref.name),
            "pool": pool_key(namespace, spec.pool_ref.name) if spec.pool_ref else None,
            "samples": spec.samples_per_task,
            "max_attempts": spec.retry.max_attempts,
            "backoff_seconds": float(spec.retry.backoff_seconds),
            "minimum_usable": spec.groups.minimum_usable_samples,
            "priority": spec.priority,
            "suspended": spec.suspended,
            "cancelled": None,
            "loaded": False,
            "next_line": 1,
            "invalid_tasks": 0,
            "groups": 0,
            "rollouts": 0,
            "finished": 0,
            "created_at": now,
        },
    )
    created = find_job(tx.connection, submission.uid)
    assert created is not None  # noqa: S101 - inserted above
    return created


def known_task_ids(connection: Connection, job_uid: str) -> set[str]:
    """Ids of the tasks that are loaded."""
    statement = select(groups.c.task_id).where(groups.c.job_uid == job_uid)
    return set(connection.execute(statement).scalars())


def load_chunk(tx: Transaction, job_uid: str, entries: Sequence[Entry], now: float) -> None:
    """Store the next entries of the task source, and that they have been read."""
    job = find_job(tx.connection, job_uid)
    if job is None or not entries:
        return
    valid = [entry for entry in entries if isinstance(entry, NumberedTask)]
    invalid = [entry for entry in entries if isinstance(entry, TaskLineError)]
    _insert_invalid(tx, job, invalid)
    rows = _Rows(job, now)
    for entry in valid:
        rows.add(entry)
    rows.insert(tx)
    tx.connection.execute(
        update(jobs).where(jobs.c.uid == job_uid),
        {
            "groups": job.groups + len(valid),
            "rollouts": job.rollouts + len(valid) * job.samples,
            "invalid_tasks": job.invalid_tasks + len(invalid),
            "next_line": entries[-1].line + 1,
        },
    )


def finish_loading(tx: Transaction, job_uid: str) -> None:
    """Let the job's units be leased."""
    tx.connection.execute(update(jobs).where(jobs.c.uid == job_uid), {"loaded": True})
    job = find_job(tx.connection, job_uid)
    if job is not None:
        wake_workers(tx, job.rules, Stage.INIT, job.groups)


def purge_some(tx: Transaction, job_uid: str) -> bool:
    """Delete some rows of a job, its own row last; says whether there is more to delete."""
    ids = select(rollouts.c.rollout_id).where(rollouts.c.job_uid == job_uid)
    chunk = tx.connection.execute(ids.limit(MOST_PURGED_AT_ONCE)).scalars().all()
    if chunk:
        for table in (trajectories, records, units, rollouts):
            tx.connection.execute(delete(table).where(table.c.rollout_id.in_(chunk)))
        return True
    of_job = select(groups.c.group_id).where(groups.c.job_uid == job_uid)
    group_chunk = tx.connection.execute(of_job.limit(MOST_PURGED_AT_ONCE)).scalars().all()
    if group_chunk:
        for table in (units, tasks, groups):
            tx.connection.execute(delete(table).where(table.c.group_id.in_(group_chunk)))
        return True
    tx.connection.execute(delete(invalid_tasks).where(invalid_tasks.c.job_uid == job_uid))
    tx.connection.execute(delete(jobs).where(jobs.c.uid == job_uid))
    tx.wake(("records", job_uid))
    return False


class _Rows:
    """The rows of a chunk of tasks."""

    def __init__(self, job: JobRow, now: float) -> None:
        self._job = job
        self._now = now
        self._next_group = job.groups
        self.groups: list[dict[str, Any]] = []
        self.tasks: list[dict[str, Any]] = []
        self.rollouts: list[dict[str, Any]] = []
        self.units: list[dict[str, Any]] = []

    def add(self, entry: NumberedTask) -> None:
        job, task = self._job, entry.task
        group = group_id(job.rules.uid, task.id)
        position = self._next_group * job.samples
        self._next_group += 1
        body = task.model_dump(mode="json", by_alias=True)
        grading = body.pop("grading")
        self.groups.append(
            {
                "group_id": group,
                "job_uid": job.rules.uid,
                "task_id": task.id,
                "metadata": json.dumps(body["metadata"]),
            }
        )
        self.tasks.append(
            {
                "group_id": group,
                "task": compress(json.dumps(body)),
                "grading": compress(json.dumps(grading)),
            }
        )
        self.units.append(self._unit(Stage.INIT, group, None, position))
        for sample in range(job.samples):
            self._add_rollout(group, sample, position + sample)

    def insert(self, tx: Transaction) -> None:
        for table, rows in (
            (groups, self.groups),
            (tasks, self.tasks),
            (rollouts, self.rollouts),
            (units, self.units),
        ):
            if rows:
                tx.connection.execute(insert(table), rows)

    def _add_rollout(self, group: str, sample: int, position: int) -> None:
        rollout = rollout_id(group, sample)
        self.rollouts.append(
            {
                "rollout_id": rollout,
                "job_uid": self._job.rules.uid,
                "group_id": group,
                "sample_index": sample,
                "provenance_issues": "[]",
                "turns": 0,
                "prompt_tokens": 0,
                "output_tokens": 0,
            }
        )
        for stage in (Stage.RUN, Stage.EVAL):
            self.units.append(self._unit(stage, group, rollout, position))

    def _unit(self, stage: Stage, group: str, rollout: str | None, position: int) -> dict[str, Any]:
        state = UnitState.QUEUED if stage is Stage.INIT else UnitState.BLOCKED
        return {
            "work_id": work_id(stage, rollout or group),
            "job_uid": self._job.rules.uid,
            "group_id": group,
            "rollout_id": rollout,
            "position": position,
            "stage": stage.value,
            "state": state.value,
            "attempt": 0,
            "charged": 0,
            "queued_at": self._now,
            "leased_at": 0.0,
            "queued_seconds": 0.0,
            "active_seconds": 0.0,
            "completed_attempt": 0,
            "completed_digest": "",
        }


def _insert_invalid(tx: Transaction, job: JobRow, invalid: Sequence[TaskLineError]) -> None:
    room = max(0, MOST_INVALID_TASKS_KEPT - job.invalid_tasks)
    rows = [
        {
            "job_uid": job.rules.uid,
            "line": entry.line,
            "field": entry.field,
            "message": entry.message,
        }
        for entry in invalid[:room]
    ]
    if rows:
        tx.connection.execute(insert(invalid_tasks), rows)
