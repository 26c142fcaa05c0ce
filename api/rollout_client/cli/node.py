"""The local node as a process: find it, start it, know whether it runs, stop it.

The node (`rollout-node`) runs the gateway, the operator and all stage pods of one state directory.
It holds `node.lock` there with its process id in it, and writes `run/node.json` once it is ready.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import BinaryIO

from rollout_client.backoff import backoff
from rollout_client.cli.failure import CliError
from rollout_crds.locations import StateDirectory

_PROGRAM = "rollout-node"
_NAMES_IN_COMMAND = (b"rollout-node", b"rollout_operator.node")
_STOP_SECONDS = 45.0
_READY_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1


class LocalNode:
    """The node of one state directory."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        places = StateDirectory(state_dir)
        self.url = places.gateway_url
        self.log = places.node_log
        self._lock_file = places.lock_file
        self._ready_file = places.ready_file

    def running_pid(self) -> int | None:
        """Process id of the node when it runs."""
        try:
            pid = int(self._lock_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        return pid if any(name in command for name in _NAMES_IN_COMMAND) else None

    def require_stopped(self) -> None:
        """Make sure that no node runs on this state directory.

        Raises:
            CliError: One does.
        """
        if (pid := self.running_pid()) is not None:
            msg = f"already up on {self.state_dir} (process {pid}); `rolloutctl down` stops it"
            raise CliError(msg)

    def replace_this_process(self) -> None:
        """Become the node: same process id, terminal and signals.

        Raises:
            CliError: The node is not installed.
        """
        command = self._command()
        os.execv(command[0], command)  # noqa: S606 - the program of this installation

    def start(self, *, tied: bool) -> "subprocess.Popen[bytes]":
        """Start the node in the background; its output goes to `logs/node.log`.

        Args:
            tied: The node ends when this process does, however that happens.

        Raises:
            CliError: The node is not installed, or the state directory cannot be written.
        """
        command = self._command()
        with self._open_log() as log:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_parent if tied else None,
            )

    def await_ready(self, pid: int) -> None:
        """Return when the node with this process id is ready.

        Raises:
            CliError: It has ended, or is not ready after a minute.
        """
        deadline = time.monotonic() + _READY_SECONDS
        for wait in backoff(longest_seconds=0.25):
            if self.ready_pid() == pid:
                return
            if not alive(pid):
                self.require_stopped()  # it found another that had started at the same time
                msg = f"the node ended at once: {last_line(self.log)}; see {self.log}"
                raise CliError(msg)
            if time.monotonic() > deadline:
                msg = f"the node is not ready after {_READY_SECONDS:.0f} s; see {self.log.parent}"
                raise CliError(msg)
            time.sleep(wait)

    def ready_pid(self) -> int | None:
        """Process id of the node that says it is ready; it may have died since."""
        try:
            ready = json.loads(self._ready_file.read_text())
        except (OSError, ValueError):
            return None
        return ready.get("pid") if isinstance(ready, dict) else None

    def stop(self, pid: int) -> None:
        """End the node and all that it runs: politely, then by force.

        Raises:
            CliError: It belongs to somebody else.
        """
        try:
            os.kill(pid, signal.SIGTERM)
            if not _gone_within(pid, _STOP_SECONDS):
                os.kill(pid, signal.SIGKILL)
                _gone_within(pid, _STOP_SECONDS)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            msg = f"process {pid} belongs to another user; stop it as that user"
            raise CliError(msg) from error

    def _open_log(self) -> BinaryIO:
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            return self.log.open("ab")
        except OSError as error:
            msg = (
                f"state directory {self.state_dir} cannot be written: {error.strerror}; "
                "choose another with --state-dir"
            )
            raise CliError(msg) from error

    def _command(self) -> list[str]:
        beside = Path(sys.executable).with_name(_PROGRAM)
        program = str(beside) if beside.exists() else shutil.which(_PROGRAM)
        if program is None:
            msg = (
                f"{_PROGRAM} is not installed; install it with "
                "`pip install 'rollout-operator[local]'`"
            )
            raise CliError(msg)
        return [program, "--state-dir", str(self.state_dir)]


def last_line(log: Path) -> str:
    """The last line of a log that is not empty."""
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        return "it logged nothing"
    return next((line.strip() for line in reversed(lines) if line.strip()), "it logged nothing")


def _gone_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def alive(pid: int) -> bool:
    """Whether the process runs; a zombie of ours is reaped and counts as gone."""
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        pass
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
