"""Submitted jobs: loading their tasks, changing their state, reading their results."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from time import monotonic

from sqlalchemy import Connection

from rollout_api.core.errors import NotFoundError, TaskSourceError
from rollout_api.core.task_lines import Entry, NumberedTask, refuse_duplicate
from rollout_api.services.hub import Hub
from rollout_api.services.live import LiveProgress, total_tokens
from rollout_api.services.task_source import next_chunk, read_entries
from rollout_api.store import job_rows, job_views, loading
from rollout_api.store.database import Database
from rollout_api.store.job_rows import JobRow
from rollout_api.store.job_views import RecordPage
from rollout_crds.control import GatewayJob, JobState, JobSubmission, LoadedJob
from rollout_crds.progress import JobProgress
from rollout_crds.result import RolloutSummary
from rollout_crds.validation import FieldError

UNITS_PER_CHUNK = 2000


@dataclass(frozen=True, slots=True)
class Records:
    """A page of records, and whether more can come."""

    page: RecordPage
    complete: bool


class Jobs:
    """What the operator and trainers do with jobs."""

    def __init__(
        self, database: Database, hub: Hub, live: LiveProgress, clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._hub = hub
        self._live = live
        self._clock = clock
        self._loading: dict[str, asyncio.Task[LoadedJob]] = {}

    async def submit(self, submission: JobSubmission) -> LoadedJob:
        """Load a job, go on loading it, or tell what was loaded.

        Raises:
            TaskSourceError: The source can not be read or has no valid task; nothing is kept.
        """
        task = self._loading.get(submission.uid)
        if task is None:
            task = asyncio.create_task(self._load(submission))
            self._loading[submission.uid] = task
            task.add_done_callback(lambda _: self._loading.pop(submission.uid, None))
        return await asyncio.shield(task)

    async def set_state(self, uid: str, state: JobState) -> None:
        """Apply what the operator wants.

        Raises:
            NotFoundError: There is no such job.
        """
        job = await self._database.write(
            lambda tx: job_rows.set_job_state(tx, uid, state, self._clock())
        )
        if job is None:
            raise _unknown(uid)
        if job.rules.cancelled is not None:
            await self.sweep_cancelled(uid)

    async def sweep_cancelled(self, uid: str) -> None:
        """End all that is open in a cancelled job, some rows at a time."""
        while await self._database.write(lambda tx: job_rows.cancel_some(tx, uid, self._clock())):
            pass

    async def resume_cancelling(self) -> None:
        """Go on with cancellations that a stop of the gateway interrupted."""
        for uid in await self._database.read(job_rows.jobs_to_cancel):
            await self.sweep_cancelled(uid)

    async def purge(self, uid: str) -> None:
        """Delete all that is known of a job."""
        while await self._database.write(lambda tx: loading.purge_some(tx, uid)):
            pass

    async def view(self, uid: str) -> GatewayJob:
        """Tell how a job stands.

        Raises:
            NotFoundError: There is no such job.
        """
        view = await self._database.read(partial(self._view, uid=uid))
        if view is None:
            raise _unknown(uid)
        return view

    async def progress(self, uid: str) -> JobProgress:
        """Count how far a job is; all zero before it is submitted."""
        view = await self._database.read(partial(self._progress, uid=uid))
        return view or JobProgress()

    async def rollouts(self, uid: str) -> list[RolloutSummary]:
        """List the rollouts of a job."""
        return await self._database.read(partial(self._rollouts, uid=uid))

    async def is_known(self, uid: str) -> bool:
        """Whether a job was submitted and not purged."""
        return await self._database.read(lambda c: job_rows.find_job(c, uid)) is not None

    async def uid_of(self, namespace: str, name: str) -> str | None:
        """The job that was last submitted under a name."""
        return await self._database.read(
            lambda connection: job_rows.newest_job_uid(connection, namespace, name)
        )

    async def records(self, uid: str, cursor: int, limit: int, wait_seconds: float) -> Records:
        """Read records behind `cursor`, waiting for the first while more can come."""
        deadline = monotonic() + wait_seconds
        read = partial(_read_records, uid=uid, cursor=cursor, limit=limit)
        with self._hub.subscribe(("records", uid)) as subscription:
            found = await self._database.read(read)
            while not found.page.lines and not found.complete:
                if not await subscription.wait(deadline - monotonic()):
                    break
                subscription.take()
                found = await self._database.read(read)
        return found

    async def _load(self, submission: JobSubmission) -> LoadedJob:
        uid = submission.uid
        job = await self._database.write(
            lambda tx: loading.begin_job(tx, submission, self._clock())
        )
        if not job.loaded:
            try:
                await self._load_tasks(job, submission)
            except TaskSourceError:
                await self.purge(uid)
                raise
        return await self._database.read(partial(_loaded, uid=uid))

    async def _load_tasks(self, job: JobRow, submission: JobSubmission) -> None:
        uid = job.rules.uid
        seen = await self._database.read(lambda connection: loading.known_task_ids(connection, uid))
        entries = read_entries(submission.spec.tasks)
        size = max(1, UNITS_PER_CHUNK // (2 * job.samples + 1))
        while chunk := await asyncio.to_thread(next_chunk, entries, size):
            fresh = [
                refuse_duplicate(entry, seen) if isinstance(entry, NumberedTask) else entry
                for entry in chunk
                if entry.line >= job.next_line
            ]
            await self._store_chunk(uid, fresh)
        loaded = await self._database.read(partial(_loaded, uid=uid))
        if loaded.groups == 0:
            raise _no_valid_task(loaded)
        await self._database.write(lambda tx: loading.finish_loading(tx, uid))
        await self.resume_cancelling()

    async def _store_chunk(self, uid: str, entries: list[Entry]) -> None:
        await self._database.write(lambda tx: loading.load_chunk(tx, uid, entries, self._clock()))

    def _view(self, connection: Connection, uid: str) -> GatewayJob | None:
        job = job_rows.find_job(connection, uid)
        progress = self._progress(connection, uid)
        if job is None or progress is None:
            return None
        verdicts = job_views.read_verdicts(connection, job)
        return GatewayJob(
            progress=progress,
            loaded=job.loaded,
            complete=job.complete,
            usable_groups=verdicts.usable,
            failed_groups=verdicts.failed,
            invalid_tasks=job_views.read_invalid_tasks(connection, uid),
        )

    def _progress(self, connection: Connection, uid: str) -> JobProgress | None:
        job = job_rows.find_job(connection, uid)
        if job is None:
            return None
        running = self._live.of(job_views.leased_runs(connection, uid))
        return job_views.read_progress(connection, job, total_tokens(running.values()))

    def _rollouts(self, connection: Connection, uid: str) -> list[RolloutSummary]:
        running = self._live.of(job_views.leased_runs(connection, uid))
        return job_views.read_rollouts(connection, uid, running)


def _read_records(connection: Connection, uid: str, cursor: int, limit: int) -> Records:
    job = job_rows.find_job(connection, uid)
    if job is None:
        return Records(RecordPage([], cursor), complete=False)
    page = job_views.read_records(connection, uid, cursor, limit)
    return Records(page, complete=job.complete and page.cursor >= job.finished)


def _loaded(connection: Connection, uid: str) -> LoadedJob:
    job = job_rows.find_job(connection, uid)
    if job is None:
        raise _unknown(uid)
    invalid = job_views.read_invalid_tasks(connection, uid)
    return LoadedJob(groups=job.groups, rollouts=job.rollouts, invalid_tasks=invalid)


def _no_valid_task(loaded: LoadedJob) -> TaskSourceError:
    fields = [
        FieldError(f"line {task.line}: {task.field}".removesuffix(": "), task.message)
        for task in loaded.invalid_tasks[:20]
    ]
    return TaskSourceError("the task source has no valid task; see `errors`", fields)


def _unknown(uid: str) -> NotFoundError:
    return NotFoundError(f"no job with uid {uid!r} was submitted, or it was purged")
