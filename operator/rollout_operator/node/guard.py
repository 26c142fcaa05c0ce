"""Kills what a dead node left: a shell that holds a list of process groups and waits.

The kernel signals a child whose parent dies, but not its grandchildren. The guard reads the groups
from a pipe of which only the node has the other end. When the node dies, however it dies, the pipe
ends, and after a grace period the guard kills every group still on the list. A child puts itself on
the list before it becomes its program, so that there is no moment at which it could be missed.
"""

import os
import subprocess

GRACE_SECONDS = 3
_SCRIPT = """
groups=' '
while read -r change group; do
    case $change in
        add) groups="$groups$group " ;;
        drop) groups="${groups%% $group *} ${groups#* $group }" ;;
    esac
done
for group in $groups; do kill -0 "-$group" 2>/dev/null && alive=1; done
[ -n "$alive" ] && sleep "$1"
for group in $groups; do kill -KILL "-$group" 2>/dev/null; done
:
"""


class Guard:
    """The process groups that must not outlive this process."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._shell = _start_shell()

    def ensure_running(self) -> None:
        """Start the guard again if somebody has killed it."""
        if self._shell.poll() is None:
            return
        _close(self._shell)
        self._shell = _start_shell()
        for group in self._groups:
            _tell(self._shell, f"add {group}\n")

    def enlist_this_process(self) -> None:
        """Called in a new child that leads a group of its own."""
        _tell(self._shell, f"add {os.getpid()}\n")

    def add(self, group: int) -> None:
        """Remember a child that has enlisted itself."""
        self._groups.add(group)

    def drop(self, group: int) -> None:
        """Take a process group from the list."""
        self._groups.discard(group)
        try:
            _tell(self._shell, f"drop {group}\n")
        except BrokenPipeError:
            self.ensure_running()

    def close(self) -> None:
        """End the guard; it kills what is still on the list."""
        _close(self._shell)


def _start_shell() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["/bin/sh", "-c", _SCRIPT, "rollout-node-guard", str(GRACE_SECONDS)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
        bufsize=0,
    )


def _close(shell: subprocess.Popen[bytes]) -> None:
    assert shell.stdin is not None  # noqa: S101 - opened as a pipe
    shell.stdin.close()
    shell.wait()


def _tell(shell: subprocess.Popen[bytes], line: str) -> None:
    assert shell.stdin is not None  # noqa: S101 - opened as a pipe
    os.write(shell.stdin.fileno(), line.encode())
