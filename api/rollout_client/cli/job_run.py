"""One run of one job: submit or resume it, follow it, write its records, report how it ended."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from rollout_client.cli.apply import apply_sources
from rollout_client.cli.cluster import DEFAULT_POOL, ensure_default_pool
from rollout_client.cli.display import Display, open_display
from rollout_client.cli.failure import FAILED, INTERRUPTED, INVALID, CliError
from rollout_client.cli.follow import follow_records, poll_progress
from rollout_client.cli.keeper import NodeKeeper
from rollout_client.cli.node import LocalNode
from rollout_client.cli.recorder import RecordFile
from rollout_client.cli.rest import Gateway
from rollout_client.cli.rollouts import rollouts_table, summary_lines
from rollout_client.cli.settings import Settings
from rollout_client.cli.sources import Source
from rollout_client.cli.submission import (
    delete_temporary_pools,
    prepare_job,
    require_llm_pool,
    with_temporary_pools,
)
from rollout_client.client import AsyncRolloutClient
from rollout_client.errors import GatewayError
from rollout_crds.reasons import ConditionType
from rollout_crds.rolloutjob import RolloutJob

_PATIENCE_SECONDS = 120.0
_DELETE_SECONDS = 20.0
_MOST_ROWS = 100


def the_job(sources: Sequence[Source]) -> RolloutJob:
    """The one job of the manifests.

    Raises:
        CliError: There is none, or more than one.
    """
    jobs = [s.resource for s in sources if isinstance(s.resource, RolloutJob)]
    if len(jobs) != 1:
        files = ", ".join(dict.fromkeys(source.file for source in sources))
        msg = f"{files}: has {len(jobs)} RolloutJobs, `run` takes one; use `apply` and `wait`"
        raise CliError(msg, INVALID)
    return jobs[0]


class JobRun:
    """Everything from the checked manifest to the exit code."""

    def __init__(
        self,
        settings: Settings,
        sources: Sequence[Source],
        job: RolloutJob,
        output: Path,
        *,
        replace: bool,
    ) -> None:
        self._settings = settings
        self._sources = sources
        self._job = job
        self._output = output
        self._replace = replace
        self._temporary = False
        """The node ends with this run, and pools that were made for it go too."""

    async def execute(self) -> int:
        """Run; returns the exit code.

        Raises:
            CliError: The job could not be started.
            GatewayError: The gateway refused something, or is gone for good.
        """
        try:
            with open_display() as display, RecordFile(self._output) as file:
                _heed_signals(display)
                async with self._node(display), self._client() as client:
                    return await self._with(client, file, display)
        except asyncio.CancelledError:
            return INTERRUPTED

    def _client(self) -> AsyncRolloutClient:
        return AsyncRolloutClient(self._settings.server, patience_seconds=_PATIENCE_SECONDS)

    @asynccontextmanager
    async def _node(self, display: Display) -> AsyncIterator[None]:
        """A node for the time of the run, unless a server is named."""
        if self._settings.named_server:
            yield
            return
        keeper = NodeKeeper(LocalNode(self._settings.state_dir), display.note)
        try:
            await keeper.start()
            self._temporary = keeper.owns_node
            yield
        finally:
            await asyncio.shield(self._leave(keeper))

    async def _leave(self, keeper: NodeKeeper) -> None:
        if keeper.owns_node:
            with suppress(GatewayError):
                async with AsyncRolloutClient(
                    self._settings.server, patience_seconds=2.0
                ) as client:
                    await delete_temporary_pools(client, self._sources)
        await keeper.stop()

    async def _with(self, client: AsyncRolloutClient, file: RecordFile, display: Display) -> int:
        job = await self._submit(client, display)
        if moved := file.assign(job.metadata.uid):
            display.note(f"records of an earlier job {job.metadata.name}: {moved}")
        if file.count:
            display.note(f"{file.path} has {_records(file.count)} already")
        try:
            final = await self._follow(client, job, file, display)
        except asyncio.CancelledError:
            await self._cancel(client, file, display)
            return INTERRUPTED
        return await self._report(client, final, file, display)

    async def _submit(self, client: AsyncRolloutClient, display: Display) -> RolloutJob:
        await require_llm_pool(client, self._job, self._sources)
        await prepare_job(client, self._job, anew=self._replace, note=display.note)
        if self._temporary:
            self._sources = await with_temporary_pools(client, self._sources)
        gateway = Gateway(self._settings.server, _PATIENCE_SECONDS)
        if self._needs_default_pool():
            await asyncio.to_thread(ensure_default_pool, gateway)
        for line in await asyncio.to_thread(apply_sources, gateway, self._sources):
            display.note(line)
        metadata = self._job.metadata
        return await client.get(RolloutJob, metadata.name, namespace=metadata.namespace)

    def _needs_default_pool(self) -> bool:
        wanted = self._job.spec.pool_ref
        named = {
            s.resource.metadata.name for s in self._sources if s.resource.kind == "RolloutPool"
        }
        in_default = self._job.metadata.namespace == "default"
        return wanted is not None and wanted.name == DEFAULT_POOL not in named and in_default

    async def _follow(
        self, client: AsyncRolloutClient, job: RolloutJob, file: RecordFile, display: Display
    ) -> RolloutJob:
        ended = asyncio.Event()
        records = asyncio.create_task(follow_records(client, job, file, ended))
        polling = asyncio.create_task(poll_progress(client, job, display))
        try:
            await asyncio.wait({records, polling}, return_when=asyncio.FIRST_EXCEPTION)
            if records.done() and not polling.done():
                records.result()
            final = await polling
            ended.set()
            await records
        finally:
            records.cancel()
            polling.cancel()
            await asyncio.gather(records, polling, return_exceptions=True)
        return final

    async def _cancel(self, client: AsyncRolloutClient, file: RecordFile, display: Display) -> None:
        display.note("cancelling: what has finished is kept; Ctrl-C again leaves at once")
        ended = asyncio.Event()
        ended.set()
        name, namespace = self._job.metadata.name, self._job.metadata.namespace
        with suppress(GatewayError, TimeoutError):
            async with asyncio.timeout(_DELETE_SECONDS):
                await follow_records(client, self._job, file, ended)
                await client.delete(RolloutJob, name, namespace=namespace)
                await client.wait_deleted(RolloutJob, name, namespace=namespace)
        kept = f"{_records(file.count)} in {file.path}" if file.count else "no rollout had finished"
        display.note(f"cancelled; {kept}")

    async def _report(
        self, client: AsyncRolloutClient, final: RolloutJob, file: RecordFile, display: Display
    ) -> int:
        metadata = final.metadata
        conditions = {c.type: c for c in final.status.conditions}
        accepted = conditions.get(ConditionType.ACCEPTED)
        if accepted is not None and accepted.status == "False":
            await client.delete(RolloutJob, metadata.name, namespace=metadata.namespace)
            msg = f"RolloutJob/{metadata.name}: {accepted.reason}: {accepted.message}"
            raise CliError(msg)
        rollouts = await client.rollouts(metadata.name, namespace=metadata.namespace)
        items = [rollout.model_dump(mode="json") for rollout in rollouts]
        progress = await client.progress(metadata.name, namespace=metadata.namespace)
        succeeded = conditions[ConditionType.SUCCEEDED]
        display.note(f"\n{rollouts_table(items[:_MOST_ROWS])}")
        if len(items) > _MOST_ROWS:
            display.note(f"... and {len(items) - _MOST_ROWS} more in {file.path}")
        display.note("")
        for line in summary_lines(items):
            display.note(line)
        if progress.invalid_tasks:
            display.note(f"refused lines of the task source: {progress.invalid_tasks}")
        display.note(f"{succeeded.reason}: {succeeded.message}")
        display.note(f"{_records(file.count)} in {file.path}")
        return 0 if succeeded.status == "True" and not progress.invalid_tasks else FAILED


def _records(count: int) -> str:
    return "1 record" if count == 1 else f"{count} records"


def _heed_signals(display: Display) -> None:
    """Let the first signal cancel the current task, and the second end the process at once."""
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in a task
    received: list[int] = []

    def heed(number: int) -> None:
        received.append(number)
        if len(received) == 1:
            task.cancel()
        else:
            display.__exit__(None, None, None)
            os._exit(INTERRUPTED)  # the node is tied to this process and ends with it

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            asyncio.get_running_loop().add_signal_handler(number, heed, number)
