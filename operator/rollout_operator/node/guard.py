"""Kills what a dead node left: a shell that holds a list of process groups and waits.

The kernel signals a child whose parent dies, but not its grandchildren. The guard reads the groups
from a pipe of which only the node has the other end. When the node dies, however it dies, the pipe
ends, and after a grace period the guard kills every group still on the list.
"""

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
for group in $groups; do kill -0 -- "-$group" 2>/dev/null && alive=1; done
[ -n "$alive" ] && sleep "$1"
for group in $groups; do kill -KILL -- "-$group" 2>/dev/null; done
:
"""


class Guard:
    """The process groups that must not outlive this process."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._shell: subprocess.Popen[bytes] | None = None

    def add(self, group: int) -> None:
        """Put a process group on the list."""
        self._groups.add(group)
        self._tell(f"add {group}\n")

    def drop(self, group: int) -> None:
        """Take a process group from the list, before its number can be used again."""
        self._groups.discard(group)
        self._tell(f"drop {group}\n")

    def close(self) -> None:
        """End the guard; it kills what is still on the list."""
        if self._shell is not None and self._shell.stdin is not None:
            self._shell.stdin.close()
            self._shell.wait()
            self._shell = None

    def _tell(self, line: str) -> None:
        if self._shell is not None and self._shell.poll() is None:
            try:
                self._write(self._shell, line)
            except BrokenPipeError:
                pass
            else:
                return
        self._start()

    def _start(self) -> None:
        """Start the shell, or start it again when somebody killed it."""
        if self._shell is not None and self._shell.stdin is not None:
            self._shell.stdin.close()
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SCRIPT, "rollout-node-guard", str(GRACE_SECONDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            cwd="/",
            bufsize=0,
        )
        self._write(self._shell, "".join(f"add {group}\n" for group in self._groups))

    @staticmethod
    def _write(shell: subprocess.Popen[bytes], text: str) -> None:
        assert shell.stdin is not None  # noqa: S101 - opened as a pipe
        shell.stdin.write(text.encode())
