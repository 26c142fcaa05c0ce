"""One bash process: runs a command at a time, and survives those that run out of time.

On time-out the foreground job is interrupted, then killed with all that descends from it, while the
shell is asked for a sign of life after each step. Only a shell that gives none is replaced.
"""

import asyncio
import os
import secrets
import signal
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..output import OutputBuffer
from ..processes import group_and_descendants, kill_all, process_table
from .framing import SETUP, Frame, Scanner
from .pty import Pty

_STEP_SECONDS = 0.4
_STEPS = (signal.SIGINT, signal.SIGINT, signal.SIGKILL, signal.SIGKILL, signal.SIGKILL)
_EXIT_GRACE_SECONDS = 0.5


@dataclass(frozen=True)
class Completion:
    """How a command ended."""

    exit_code: int | None
    timed_out: bool
    shell_alive: bool


class Shell:
    """A running bash on a terminal."""

    def __init__(self, argv: list[str], cwd: str, env: dict[str, str], run_dir: Path) -> None:
        self._pty = Pty([*argv, "--noprofile", "--norc", "--noediting", "-i"], cwd, env)
        self._script = run_dir / f"bash-{self._pty.pid}"
        self._scanner: Scanner | None = None
        self._finished = asyncio.Event()
        self._alive = True
        self._last_status = 0
        self._pty.write(SETUP)
        asyncio.get_running_loop().add_reader(self._pty.fd, self._on_readable)

    @property
    def alive(self) -> bool:
        """Whether the terminal is still open."""
        return self._alive

    async def run(self, command: str, timeout_seconds: float, output: OutputBuffer) -> Completion:
        """Run a command; its output goes to `output` as it comes."""
        frame = Frame(secrets.token_hex(16))
        self._script.write_text(command)
        self._scanner = Scanner(frame, output)
        self._finished.clear()
        self._pty.reset_modes()
        self._pty.write(frame.run_line(str(self._script), self._last_status))
        timed_out = not await self._wait(timeout_seconds)
        if timed_out and not await self._interrupt(frame):
            self._pty.kill()
            self._alive = False
        return await self._complete(timed_out)

    async def close(self) -> int | None:
        """End the shell and return its exit status, None if it had to be killed."""
        asyncio.get_running_loop().remove_reader(self._pty.fd)
        status = await self._exit_status(_EXIT_GRACE_SECONDS if not self._alive else 0)
        if status is None:
            self._pty.kill()
            await self._exit_status(_EXIT_GRACE_SECONDS)
        self._pty.close()
        self._alive = False
        self._script.unlink(missing_ok=True)
        return status

    async def _exit_status(self, patience_seconds: float) -> int | None:
        deadline = asyncio.get_running_loop().time() + patience_seconds
        while (status := self._pty.poll()) is None:
            if asyncio.get_running_loop().time() >= deadline:
                return None
            await asyncio.sleep(0.005)
        return status

    async def _complete(self, timed_out: bool) -> Completion:
        assert self._scanner is not None  # noqa: S101 - set by run()
        scanner, self._scanner = self._scanner, None
        if scanner.exit_code is None:
            scanner.finish()
        else:
            self._last_status = scanner.exit_code
        return Completion(scanner.exit_code, timed_out, self._alive)

    async def _wait(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._finished.wait()
        except TimeoutError:
            return False
        return True

    async def _interrupt(self, frame: Frame) -> bool:
        for step in _STEPS:
            with suppress(OSError):
                self._signal_foreground(step)
                self._pty.reset_modes()
                self._pty.write(frame.end_line())
            if await self._wait(_STEP_SECONDS):
                return True
        return False

    def _signal_foreground(self, number: signal.Signals) -> None:
        group = self._pty.foreground_group()
        if number is signal.SIGINT:
            os.killpg(group, number)
        elif group != self._pty.pid:
            kill_all(group_and_descendants(process_table(), group))

    def _on_readable(self) -> None:
        data = self._pty.read()
        if data is None:
            asyncio.get_running_loop().remove_reader(self._pty.fd)
            self._alive = False
            self._finished.set()
        elif self._scanner is not None and self._scanner.feed(data):
            self._finished.set()
