"""Child processes that end with the node and take their process group with them.

All of this runs in the main thread: the kernel sends the parent-death signal when the *thread* that
made the child ends.
"""

import asyncio
import ctypes
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rollout_operator.node.errors import StartError
from rollout_operator.node.guard import Guard

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Program:
    """A program to run."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    log: Path
    """Its standard output and error are appended here."""
    death_signal: signal.Signals
    """Sent to it when the node dies."""
    socket: Path | None = None
    """A Unix socket that it listens on."""
    scratch: Path | None = None
    """Its directory for temporary files, made before it starts."""

    def clean_up(self) -> None:
        """Remove what an ended process has left: to its socket a new one could not bind."""
        if self.socket is not None and self.socket.is_socket():
            self.socket.unlink()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)

    @property
    def environment(self) -> dict[str, str]:
        """Its environment."""
        return {**self.env, **({"TMPDIR": str(self.scratch)} if self.scratch else {})}


class Process:
    """A running program, the leader of its own session and process group."""

    def __init__(self, popen: subprocess.Popen[bytes], exit_code: asyncio.Future[int]) -> None:
        self.pid = popen.pid
        self.exit_code = exit_code
        """Negative: the number of the signal that killed it."""
        self._popen = popen

    async def stop(self, grace_seconds: float) -> None:
        """Ask the leader to end with SIGTERM, and kill the whole group after the grace period."""
        if self.exit_code.done():
            return
        self._popen.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(asyncio.shield(self.exit_code), grace_seconds)
        except TimeoutError:
            kill_group(self.pid)
            await asyncio.shield(self.exit_code)

    def reap(self) -> bool:
        """If it has ended, kill what is left of its group and collect its exit code.

        The group is killed while the dead leader still holds its number.
        """
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            return False
        kill_group(self.pid)
        self.exit_code.set_result(self._popen.wait())
        return True


class ProcessTable:
    """The node's children, reaped on SIGCHLD without threads."""

    def __init__(self) -> None:
        self._running: list[Process] = []
        self._guard = Guard()
        self._loop = asyncio.get_running_loop()
        self._loop.add_signal_handler(signal.SIGCHLD, self._reap)

    def spawn(self, program: Program) -> Process:
        """Start a program.

        Raises:
            StartError: It cannot be found or started.
        """
        executable = _executable(program)
        program.clean_up()
        if program.scratch is not None:
            program.scratch.mkdir(parents=True)
        self._guard.ensure_running()
        with program.log.open("ab") as log:
            try:
                popen = subprocess.Popen(
                    [executable, *program.argv[1:]],
                    env=program.environment,
                    cwd=program.cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=_preparation(self._guard, os.getpid(), program.death_signal),
                )
            except (OSError, subprocess.SubprocessError) as error:
                msg = f"cannot start `{program.argv[0]}`: {error}"
                raise StartError(msg) from error
        process = Process(popen, self._loop.create_future())
        self._guard.add(process.pid)
        self._running.append(process)
        return process

    def close(self) -> None:
        """Kill whatever still runs and let go of SIGCHLD."""
        self._loop.remove_signal_handler(signal.SIGCHLD)
        for process in self._running:
            kill_group(process.pid)
        self._guard.close()

    def _reap(self) -> None:
        ended = [process for process in self._running if process.reap()]
        for process in ended:
            self._guard.drop(process.pid)
            self._running.remove(process)


def _executable(program: Program) -> str:
    if not program.argv:
        msg = "cannot start a container without a command: set `command`"
        raise StartError(msg)
    name = program.argv[0]
    found = shutil.which(name, path=program.env.get("PATH"))
    if found is None:
        msg = f"cannot start `{name}`: not found on PATH ({program.env.get('PATH', '')})"
        raise StartError(msg)
    return found


def _preparation(guard: Guard, parent: int, death_signal: signal.Signals) -> Callable[[], None]:
    """What the child does before it becomes the program; covers a parent that died meanwhile."""

    def prepare() -> None:
        guard.enlist_this_process()
        _libc.prctl(_PR_SET_PDEATHSIG, int(death_signal))
        if os.getppid() != parent:
            os._exit(1)

    return prepare


def kill_group(group: int) -> None:
    """Kill a process group; one that is gone is fine."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
