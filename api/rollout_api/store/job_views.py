"""What can be read of a job: progress, rollouts, records, and the contents of leases."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from rollout_api.core.compression import decompress
from rollout_api.core.groups import GroupTally, GroupVerdicts, judge_groups
from rollout_api.core.ids import work_id
from rollout_api.core.progress import JobTotals, Tokens, count_progress
from rollout_api.core.summaries import summarise
from rollout_api.core.units import Unit, UnitState
from rollout_api.store.job_rows import JobRow
from rollout_api.store.schema import (
    groups,
    invalid_tasks,
    records,
    rollouts,
    trajectories,
    units,
)
from rollout_api.store.units import select_units, to_unit
from rollout_crds.progress import JobProgress
from rollout_crds.result import Failure, Outcome, RolloutSummary, Stage
from rollout_crds.taskfile import TaskLineError
from rollout_crds.wire import LeaseProgress


def read_progress(connection: Connection, job: JobRow, running: Tokens) -> JobProgress:
    """Count how far a job is; `running` are the tokens of rollouts that are leased."""
    uid = job.rules.uid
    unit_rows = connection.execute(
        select(units.c.stage, units.c.state, func.count())
        .where(units.c.job_uid == uid)
        .group_by(units.c.stage, units.c.state)
    )
    outcome_rows = connection.execute(
        select(
            rollouts.c.outcome,
            func.count(),
            func.sum(rollouts.c.prompt_tokens),
            func.sum(rollouts.c.output_tokens),
        )
        .where(rollouts.c.job_uid == uid)
        .group_by(rollouts.c.outcome)
    ).all()
    return count_progress(
        JobTotals(job.groups, job.rollouts, job.finished, job.invalid_tasks),
        ((Stage(stage), UnitState(state), count) for stage, state, count in unit_rows),
        ((Outcome(row[0]), row[1]) for row in outcome_rows if row[0] is not None),
        [running, *(Tokens(row[2], row[3]) for row in outcome_rows)],
    )


def read_verdicts(connection: Connection, job: JobRow) -> GroupVerdicts:
    """Count usable and failed groups."""
    finished, scored = (
        func.count(rollouts.c.outcome),
        func.sum(rollouts.c.outcome == Outcome.SCORED.value),
    )
    rows = connection.execute(
        select(func.count(), finished, func.coalesce(scored, 0))
        .where(rollouts.c.job_uid == job.rules.uid)
        .group_by(rollouts.c.group_id)
    )
    tallies = (GroupTally(samples, done, good) for samples, done, good in rows)
    return judge_groups(tallies, job.minimum_usable)


def read_invalid_tasks(connection: Connection, job_uid: str) -> tuple[TaskLineError, ...]:
    """The tasks that were refused, by line."""
    statement = (
        select(invalid_tasks.c.line, invalid_tasks.c.field, invalid_tasks.c.message)
        .where(invalid_tasks.c.job_uid == job_uid)
        .order_by(invalid_tasks.c.line)
    )
    return tuple(
        TaskLineError(line=row.line, field=row.field, message=row.message)
        for row in connection.execute(statement)
    )


def leased_runs(connection: Connection, job_uid: str) -> dict[str, int]:
    """The RUN units of a job that are leased, with their attempts."""
    statement = select(units.c.work_id, units.c.attempt).where(
        units.c.job_uid == job_uid,
        units.c.stage == Stage.RUN.value,
        units.c.state == UnitState.LEASED.value,
    )
    return {row.work_id: row.attempt for row in connection.execute(statement)}


def read_rollouts(
    connection: Connection, job_uid: str, running: Mapping[str, LeaseProgress]
) -> list[RolloutSummary]:
    """All rollouts of a job in order of creation; `running` is the progress of leased RUN units."""
    stages = _units_by_subject(connection, job_uid)
    statement = (
        select(rollouts, groups.c.task_id)
        .join_from(rollouts, groups, groups.c.group_id == rollouts.c.group_id)
        .join(units, (units.c.rollout_id == rollouts.c.rollout_id) & (units.c.stage == "run"))
        .where(rollouts.c.job_uid == job_uid)
        .order_by(units.c.position)
    )
    return [
        summarise(
            RolloutSummary(
                rollout_id=row.rollout_id,
                group_id=row.group_id,
                task_id=row.task_id,
                sample_index=row.sample_index,
                stage=Stage.INIT,
                state="waiting",
                outcome=row.outcome,
                trainable=row.trainable,
                reward=row.reward,
                failure=Failure.model_validate_json(row.failure) if row.failure else None,
                turns=row.turns,
                prompt_tokens=row.prompt_tokens,
                output_tokens=row.output_tokens,
            ),
            {**stages[row.group_id], **stages[row.rollout_id]},
            running.get(work_id(Stage.RUN, row.rollout_id)),
        )
        for row in connection.execute(statement)
    ]


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Some records as JSON, with the cursor behind the last."""

    lines: list[str]
    cursor: int


def read_records(connection: Connection, job_uid: str, cursor: int, limit: int) -> RecordPage:
    """Read records with a sequence number above `cursor`, with their trajectories."""
    statement = (
        select(records.c.sequence, records.c.body, trajectories.c.body)
        .join_from(
            records,
            trajectories,
            trajectories.c.rollout_id == records.c.rollout_id,
            isouter=True,
        )
        .where(records.c.job_uid == job_uid, records.c.sequence > cursor)
        .order_by(records.c.sequence)
        .limit(limit)
    )
    lines: list[str] = []
    for sequence, body, trajectory in connection.execute(statement):
        whole = decompress(trajectory) if trajectory is not None else "null"
        lines.append(f'{body[:-1]},"trajectory":{whole}}}')
        cursor = sequence
    return RecordPage(lines, cursor)


def _units_by_subject(connection: Connection, job_uid: str) -> Mapping[str, dict[Stage, Unit]]:
    statement = (
        select_units()
        .add_columns(units.c.group_id, units.c.rollout_id)
        .where(units.c.job_uid == job_uid)
    )
    found: dict[str, dict[Stage, Unit]] = {}
    for row in connection.execute(statement):
        unit = to_unit(row)
        found.setdefault(row.rollout_id or row.group_id, {})[unit.stage] = unit
    return found
