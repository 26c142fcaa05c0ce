"""Runs the program of one pod: starts it, starts it again by its policy, stops it."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime

from rollout_crds.pod import PodStatus
from rollout_operator.node.errors import StartError
from rollout_operator.node.logs import last_line
from rollout_operator.node.process import Process, ProcessTable, Program
from rollout_operator.node.restart import RestartPolicy, after_exit, describe_exit

log = logging.getLogger(__name__)

_CANNOT_START = 127
"""Exit code that a shell gives for a program that it cannot start."""


class PodRunner:
    """The life of one pod's program.

    Args:
        name: For the log.
        program: What to run.
        policy: When to start it again.
        table: Starts and reaps processes.
        on_change: Called after `status` has changed.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        policy: RestartPolicy,
        table: ProcessTable,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.name = name
        self.program = program
        self.status = PodStatus()
        self._policy: RestartPolicy = policy
        self._table = table
        self._on_change = on_change
        self._process: Process | None = None
        self._task: asyncio.Task[None] | None = None
        self._failures = 0

    def start(self, after: asyncio.Task[None] | None = None) -> None:
        """Begin; when `after` is given, once that is over."""
        self._task = asyncio.get_running_loop().create_task(self._run(after))

    async def stop(self, grace_seconds: float) -> None:
        """Stop the program for good; returns when it and its process group are gone."""
        if self._task is None:
            return
        log.info("%s: stopping", self.name)
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        if self._process is not None:
            await self._process.stop(grace_seconds)
            self.program.clean_up()
        self._task = None

    async def _run(self, after: asyncio.Task[None] | None) -> None:
        if after is not None:
            await asyncio.shield(after)
        while (delay := await self._run_once()) is not None:
            await asyncio.sleep(delay)
            self._set(restart_count=self.status.restart_count + 1)

    async def _run_once(self) -> float | None:
        """Run the program to its end; return the seconds until it is started again."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            self._process = self._table.spawn(self.program)
        except StartError as error:
            return self._ended(_CANNOT_START, 0.0, str(error))
        start_time = self.status.start_time or datetime.now(UTC)
        self._set(phase="Running", reason="", message="", start_time=start_time)
        log.info("%s: started as process %d", self.name, self._process.pid)
        code = await asyncio.shield(self._process.exit_code)
        return self._ended(code, loop.time() - started, self._how_it_ended(code))

    def _how_it_ended(self, code: int) -> str:
        """The exit with the program's last words; the same for the same cause, to be counted."""
        words = last_line(self.program.log) if code > 0 else ""
        return f"{describe_exit(code)}: {words}" if words else describe_exit(code)

    def _ended(self, code: int, ran_seconds: float, what: str) -> float | None:
        verdict = after_exit(self._policy, code, ran_seconds, self._failures)
        self._failures = verdict.failures
        if verdict.restart_in is None:
            reason = "Completed" if code == 0 else "Error"
            self._set(phase=verdict.phase, reason=reason, message=what)
            log.info("%s: %s after %.1f s", self.name, what, ran_seconds)
            return None
        self._set(phase=verdict.phase, reason="CrashLoopBackOff", message=what)
        log.warning(
            "%s: %s after %.1f s; starts again in %g s",
            *(self.name, what, ran_seconds, verdict.restart_in),
        )
        return verdict.restart_in

    def _set(self, **changes: object) -> None:
        self.status = self.status.model_copy(update=changes)
        self._on_change()
