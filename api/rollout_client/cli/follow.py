"""Follow a job on two tracks: its records into a file, its progress onto the display."""

import asyncio
import time

from rollout_client.cli.display import Display
from rollout_client.cli.progress import History, waiting_for
from rollout_client.cli.recorder import RecordFile
from rollout_client.client import AsyncRolloutClient
from rollout_client.errors import NotFound
from rollout_crds.llmpool import LLMPool
from rollout_crds.progress import JobProgress
from rollout_crds.reasons import ConditionType
from rollout_crds.rolloutjob import RolloutJob

_POLL_SECONDS = 0.5
_PAGE_SIZE = 50
_HOLD_SECONDS = 5.0


async def follow_records(
    client: AsyncRolloutClient, job: RolloutJob, file: RecordFile, ended: asyncio.Event
) -> None:
    """Append each record as it comes; after `ended` is set, what is there and no more."""
    name, namespace, cursor = job.metadata.name, job.metadata.namespace, 0
    while True:
        last = ended.is_set()
        try:
            page = await client.record_page(
                name,
                namespace=namespace,
                cursor=cursor,
                limit=_PAGE_SIZE,
                wait_seconds=0.0 if last else _HOLD_SECONDS,
            )
        except NotFound:  # not handed to the queue yet
            if last:
                return
            await asyncio.sleep(_POLL_SECONDS)
            continue
        await asyncio.to_thread(file.append, page.lines)
        cursor = page.cursor
        if len(page.lines) < _PAGE_SIZE and (page.complete or last):
            return


async def poll_progress(
    client: AsyncRolloutClient, job: RolloutJob, display: Display
) -> RolloutJob:
    """Show the progress until the job has ended, and return it as it then is.

    Raises:
        NotFound: It was deleted meanwhile.
    """
    name, namespace = job.metadata.name, job.metadata.namespace
    history = History(time.monotonic())
    while True:
        current = await client.get(RolloutJob, name, namespace=namespace)
        now = time.monotonic()
        history.add(now, await _progress(client, current))
        waiting = waiting_for(current, await _llm_pool(client, current))
        display.update(history.view(name, now, waiting))
        if has_ended(current):
            return current
        await asyncio.sleep(_POLL_SECONDS)


def has_ended(job: RolloutJob) -> bool:
    """Whether the job has succeeded or failed for good, or was refused."""
    statuses = {c.type: c.status for c in job.status.conditions}
    refused = statuses.get(ConditionType.ACCEPTED) == "False"
    return refused or statuses.get(ConditionType.SUCCEEDED) in {"True", "False"}


async def _progress(client: AsyncRolloutClient, job: RolloutJob) -> JobProgress:
    try:
        return await client.progress(job.metadata.name, namespace=job.metadata.namespace)
    except NotFound:  # not handed to the queue yet
        return job.status.progress


async def _llm_pool(client: AsyncRolloutClient, job: RolloutJob) -> LLMPool | None:
    if job.status.start_time is not None:
        return None
    try:
        return await client.get(
            LLMPool, job.spec.llm.pool_ref.name, namespace=job.metadata.namespace
        )
    except NotFound:
        return None
