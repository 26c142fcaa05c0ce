"""Programs that never outlive the process that started them, however that one ends.

The kernel kills them together with the thread that started them, so start them from a thread that
lives as long as they should.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from hack.kube.errors import KubeError
from hack.setup.store import default_root

# Between the fork and the request to be killed the parent may already be gone.
_GUARD = '[ "$PPID" = "$0" ] && exec "$@"'
WITHOUT_PRIVILEGES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs")
_STOP_S = 15.0
_LINES_TOLD = 8


def program(name: str) -> str:
    """Return the path of one of the programs that set-up built.

    Raises:
        KubeError: It is not there.
    """
    path = default_root() / "bin" / name
    if not path.exists():
        raise KubeError(f"no {path}: run `make setup-kubernetes`")
    return str(path)


def kubectl(kubeconfig: Path) -> list[str]:
    """Return the start of a command of kubectl.

    It keeps no cache: kubectl would remember the kinds of another cluster at the same address, and
    that a kind which was just added does not exist.
    """
    return [program("kubectl"), f"--kubeconfig={kubeconfig}", "--cache-dir=/dev/null"]


def unprivileged(argv: Sequence[str]) -> list[str]:
    """Return a command that runs without capabilities even when the caller is root."""
    return [*(WITHOUT_PRIVILEGES if os.geteuid() == 0 else ()), *argv]


def dying_with_parent(argv: Sequence[str]) -> list[str]:
    """Return a command that is killed as soon as its parent is gone."""
    return ["setpriv", "--pdeathsig", "KILL", "sh", "-c", _GUARD, str(os.getpid()), *argv]


class Process:
    """A program with a log, which can be killed and started again."""

    def __init__(self, name: str, argv: Sequence[str], log: Path) -> None:
        self.name = name
        self.log = log
        self._argv = dying_with_parent(argv)
        self._running: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id of the program."""
        if self._running is None:
            raise KubeError(f"{self.name} was not started")
        return self._running.pid

    def start(self) -> None:
        """Start the program; its output is appended to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self._argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        """Tell whether the program was started and has not ended."""
        return self._running is not None and self._running.poll() is None

    def check(self) -> None:
        """Make sure that the program still runs.

        Raises:
            KubeError: It ended; has the end of its log.
        """
        if not self.is_running:
            raise KubeError(f"{self.name} ended; the end of {self.log}:\n{self.tail()}")

    def tail(self) -> str:
        """Return the last lines of the log."""
        if not self.log.exists():
            return ""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-_LINES_TOLD:])

    def kill(self) -> None:
        """Kill the program, if it runs, and wait until it is gone."""
        if self._running is not None:
            self._running.kill()
            self.wait()

    def wait(self) -> None:
        """Wait until the program has ended."""
        if self._running is not None:
            self._running.wait(_STOP_S)
