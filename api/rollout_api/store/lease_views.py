"""The contents of leases, put together from stored JSON that is not parsed again."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from rollout_api.core.compression import decompress
from rollout_api.core.units import Unit
from rollout_api.store.queue import Claim
from rollout_api.store.schema import groups, jobs, rollouts, tasks, trajectories, units
from rollout_crds.control import LLMPoolRegistration
from rollout_crds.result import Stage
from rollout_crds.wire import LLMBackend


def read_leases(connection: Connection, claims: Sequence[Claim], lease_seconds: float) -> list[str]:
    """Write each claimed unit as the JSON of a `Lease`."""
    specs = _Specs(connection, {claim.job_uid for claim in claims})
    rows = _rows(connection, [claim.unit.work_id for claim in claims])
    return [
        _lease(claim, rows[claim.unit.work_id], specs, lease_seconds)
        for claim in claims
        if claim.unit.work_id in rows and claim.job_uid in specs.jobs
    ]


class _Specs:
    """The specs of a few jobs."""

    def __init__(self, connection: Connection, uids: set[str]) -> None:
        columns = (jobs.c.uid, jobs.c.name, jobs.c.namespace, jobs.c.spec)
        statement = select(*columns).where(jobs.c.uid.in_(uids))
        self.jobs = {row.uid: row for row in connection.execute(statement)}
        self._stages = {uid: json.loads(row.spec)["stages"] for uid, row in self.jobs.items()}

    def active_deadline_seconds(self, uid: str, stage: Stage) -> int:
        return int(self._stages[uid][stage.value]["activeDeadlineSeconds"])


def _rows(connection: Connection, work_ids: list[str]) -> Mapping[str, Row[*tuple[Any, ...]]]:
    statement = (
        select(
            units.c.work_id,
            units.c.group_id,
            units.c.rollout_id,
            tasks.c.task,
            tasks.c.grading,
            groups.c.environment,
            rollouts.c.sample_index,
            rollouts.c.artifact,
            trajectories.c.body,
        )
        .join_from(units, tasks, tasks.c.group_id == units.c.group_id)
        .join(groups, groups.c.group_id == units.c.group_id)
        .join(rollouts, rollouts.c.rollout_id == units.c.rollout_id, isouter=True)
        .join(trajectories, trajectories.c.rollout_id == units.c.rollout_id, isouter=True)
        .where(units.c.work_id.in_(work_ids))
    )
    return {row.work_id: row for row in connection.execute(statement)}


def _lease(claim: Claim, row: Row[*tuple[Any, ...]], specs: _Specs, lease_seconds: float) -> str:
    unit, job = claim.unit, specs.jobs[claim.job_uid]
    values = {
        "work_id": unit.work_id,
        "attempt": unit.attempt,
        "stage": unit.stage.value,
        "job_uid": claim.job_uid,
        "job_name": job.name,
        "namespace": job.namespace,
        "group_id": row.group_id,
        "rollout_id": row.rollout_id,
        "sample_index": row.sample_index,
        "lease_seconds": lease_seconds,
        "active_deadline_seconds": specs.active_deadline_seconds(claim.job_uid, unit.stage),
    }
    stored = {"spec": job.spec, "task": _task(row, unit.stage)}
    if unit.stage is not Stage.INIT:
        stored["environment"] = row.environment
    if unit.stage is Stage.RUN:
        stored["backend"] = _backend(unit, claim.pool)
    if unit.stage is Stage.EVAL:
        stored["artifact"] = row.artifact
        stored["trajectory"] = decompress(row.body)
    return _object(values, stored)


def _task(row: Row[*tuple[Any, ...]], stage: Stage) -> str:
    grading = decompress(row.grading)
    if stage is Stage.RUN:
        grading = json.dumps({"artifacts": json.loads(grading)["artifacts"]})
    return f'{decompress(row.task)[:-1]},"grading":{grading}}}'


def _backend(unit: Unit, pool: LLMPoolRegistration | None) -> str:
    assert pool is not None  # noqa: S101 - RUN is only claimed with a backend
    backend = next(b for b in pool.backends if b.name == unit.backend)
    return LLMBackend(
        name=backend.name, url=backend.url, pool=pool.spec, max_model_len=backend.max_model_len
    ).model_dump_json(by_alias=True)


def _object(values: Mapping[str, Any], stored: Mapping[str, str]) -> str:
    parts = [json.dumps(values)[1:-1], *(f'"{name}":{text}' for name, text in stored.items())]
    return "{" + ",".join(parts) + "}"
