"""Runs programs for set-up: output goes to a log, a failure becomes one clear line.

Children stay in the caller's process group, so that `sudo` can ask for a password on the
terminal and Ctrl-C reaches them; `stop_all` ends them when only this process gets a signal.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from hack.setup.errors import SetupError

_ERROR = re.compile(r"^(E:|error\b|cause:|fatal)|\berror:", re.IGNORECASE)
_running: set[subprocess.Popen[bytes]] = set()
_guard = threading.Lock()
_stopping = threading.Event()


def stop_all() -> None:
    """Terminate every program that is still running and let no other start."""
    _stopping.set()
    with _guard:
        for process in _running:
            process.terminate()


def _cause(log: Path, start: int) -> str:
    """Return the line of a program's output that most likely names why it failed."""
    with log.open("rb") as file:
        file.seek(start)
        text = file.read().decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    return (errors or lines or ["no output"])[-1]


class Shell:
    """Runs programs with their output appended to one log file."""

    def __init__(self, log: Path) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)

    def run(
        self,
        *argv: str | Path,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        remedy: str = "",
    ) -> None:
        """Run a program to its end.

        Raises:
            SetupError: It cannot start or it failed; tells its last line of output and `remedy`.
        """
        words = [str(word) for word in argv]
        start = self.log.stat().st_size if self.log.exists() else 0
        code = self._status(words, cwd, env)
        if code:
            cause = f"`{words[0]}` failed with status {code}: {_cause(self.log, start)}"
            raise SetupError(f"{cause}; {remedy or 'see the log'} ({self.log})")

    def succeeds(self, *argv: str | Path, env: Mapping[str, str] | None = None) -> bool:
        """Run a program and tell whether it ended with status 0."""
        try:
            return self._status([str(word) for word in argv], None, env) == 0
        except SetupError:
            return False

    def _status(self, words: Sequence[str], cwd: Path | None, env: Mapping[str, str] | None) -> int:
        if _stopping.is_set():
            message = "stopped"
            raise SetupError(message)
        with self.log.open("ab") as log:
            log.write(f"$ {shlex.join(words)}\n".encode())
            log.flush()
            try:
                process = subprocess.Popen(
                    words,
                    cwd=cwd,
                    env={**os.environ, **(env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            except OSError as error:
                raise SetupError(f"cannot start `{words[0]}`: {error.strerror}") from error
            with _guard:
                _running.add(process)
            try:
                return process.wait()
            finally:
                with _guard:
                    _running.discard(process)


def output(*argv: str | Path) -> str:
    """Return the standard output of a short command, or "" when it is missing or fails."""
    try:
        done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    except OSError:
        return ""
    return done.stdout if done.returncode == 0 else ""


def as_root(why: str) -> list[str]:
    """Return the prefix that runs a command as root: nothing for root itself, else `sudo`.

    Raises:
        SetupError: Not root, and there is no `sudo`.
    """
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        raise SetupError(f"root is needed to {why}: run this as root, or install sudo")
    return ["sudo"]
