"""One bash process: runs a command at a time, and survives those that run out of time.

On time-out the foreground job is interrupted, then killed with all that descends from it, while the
shell is asked for a sign of life after each step. Only a shell that gives none is replaced.
"""

import os
import select
import signal
import time
from contextlib import suppress
from typing import NamedTuple

from ..output import OutputBuffer
from ..processes import group_and_descendants, kill_all, process_table
from .framing import SETUP, Frame, Scanner, without_marks
from .pty import Pty

_STEP_SECONDS = 0.4
_STEPS = (signal.SIGINT, signal.SIGINT, signal.SIGKILL, signal.SIGKILL, signal.SIGKILL)
_EXIT_GRACE_SECONDS = 0.5


class Completion(NamedTuple):
    """How a command ended."""

    exit_code: int | None
    timed_out: bool
    shell_alive: bool


class Shell:
    """A running bash on a terminal; its caller sees to it that one thread at a time is here."""

    def __init__(
        self, argv: list[str], cwd: str, env: dict[str, str], run_dir: str, background_bytes: int
    ) -> None:
        self._pty = Pty([*argv, "--noprofile", "--norc", "--noediting", "-i"], cwd, env)
        self.fd = self._pty.fd
        self._poll = select.poll()
        self._poll.register(self.fd, select.POLLIN)
        self._run_dir = run_dir
        self._background_bytes = background_bytes
        self._background: OutputBuffer | None = None
        self._alive = True
        self._last_status = 0
        self._pty.write(SETUP)

    @property
    def alive(self) -> bool:
        """Whether the terminal is still open."""
        return self._alive

    def run(self, command: str, timeout_seconds: float, output: OutputBuffer) -> Completion:
        """Run a command; its output goes to `output` as it comes."""
        frame = Frame(os.urandom(16).hex())
        # A new name each time, which nobody inside can have taken.
        script = f"{self._run_dir}/{os.urandom(8).hex()}"
        with open(script, "x") as file:  # noqa: PTH123 - pathlib is not loaded here
            file.write(command)
        try:
            return self._run(script, frame, timeout_seconds, output)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(script)  # noqa: PTH108

    def _run(
        self, script: str, frame: Frame, timeout_seconds: float, output: OutputBuffer
    ) -> Completion:
        scanner = Scanner(frame, output)
        self._pty.reset_modes()
        self._pty.write(frame.run_line(script, self._last_status))
        timed_out = not self._scan(scanner, timeout_seconds)
        if timed_out and not self._interrupt(frame, scanner):
            self._pty.kill()
            self._alive = False
        if scanner.exit_code is None:
            scanner.finish()
        else:
            self._last_status = scanner.exit_code
            self._keep_background(scanner.rest)
        return Completion(scanner.exit_code, timed_out, self._alive)

    def drain(self) -> bool:
        """Take what was printed since the last command; return False once the shell is gone."""
        data = self._pty.read()
        if data is None:
            self._alive = False
            return False
        self._keep_background(data)
        return True

    def take_background(self) -> str:
        """Return what `drain` took since the last call."""
        while self._poll.poll(0) and self.drain():
            continue
        taken, self._background = self._background, None
        return without_marks(taken.text()) if taken else ""

    def close(self) -> int | None:
        """End the shell and return its exit status, None if it had to be killed."""
        status = self._exit_status(_EXIT_GRACE_SECONDS if not self._alive else 0)
        if status is None:
            self._pty.kill()
            self._exit_status(_EXIT_GRACE_SECONDS)
        self._pty.close()
        self._alive = False
        return status

    def _keep_background(self, data: bytes) -> None:
        if data:
            self._background = self._background or OutputBuffer(self._background_bytes)
            self._background.feed(data)

    def _exit_status(self, patience_seconds: float) -> int | None:
        deadline = time.monotonic() + patience_seconds
        while (status := self._pty.poll()) is None:
            if time.monotonic() >= deadline:
                return None
            time.sleep(0.005)
        return status

    def _scan(self, scanner: Scanner, seconds: float) -> bool:
        """Read until the command's end (or the shell's); return False when time is over first."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if not self._poll.poll(left * 1000):
                continue
            data = self._pty.read()
            if data is None:
                self._alive = False
                return True
            if scanner.feed(data):
                return True
        return False

    def _interrupt(self, frame: Frame, scanner: Scanner) -> bool:
        for step in _STEPS:
            with suppress(OSError):
                self._signal_foreground(step)
                self._pty.reset_modes()
                self._pty.write(frame.end_line())
            if self._scan(scanner, _STEP_SECONDS):
                return True
        return False

    def _signal_foreground(self, number: signal.Signals) -> None:
        group = self._pty.foreground_group()
        if number is signal.SIGINT:
            os.killpg(group, number)
        elif group != self._pty.pid:
            kill_all(group_and_descendants(process_table(), group))
