"""The state directory: where everything of one node is, and the lock that makes it one."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rollout_crds.locations import MAX_SOCKET_PATH, StateDirectory
from rollout_operator.node.errors import NodeError

_TEMPORARY_NAME_BYTES = 40
"""What programs add to `$TMPDIR` for a socket: `/UUID`, `/pymp-XXXXXXXX/listener-XXXXXXXX`."""


@dataclass(frozen=True)
class NodePaths(StateDirectory):
    """The state directory of the node that runs here."""

    def make(self) -> None:
        """Make all directories, for their owner alone.

        Raises:
            NodeError: One cannot be made, or the path is too long for a socket.
        """
        length = len(os.fsencode(self.gateway_socket))
        if length > MAX_SOCKET_PATH:
            msg = (
                f"state directory {self.root} is too long: a socket in it would have "
                f"{length} bytes, {MAX_SOCKET_PATH} are possible: choose a shorter --state-dir"
            )
            raise NodeError(msg)
        try:
            self.root.parent.mkdir(parents=True, exist_ok=True)
            for directory in (self.root, self.run, self.logs, self.work, self.blobs):
                directory.mkdir(mode=0o700, exist_ok=True)
                directory.chmod(0o700)
        except OSError as error:
            msg = f"cannot make the state directory {self.root}: {error.strerror}"
            raise NodeError(msg) from error

    @property
    def scratch(self) -> Path:
        """Temporary files of pods; nothing in it outlives the node."""
        return self.root / "tmp"

    def scratch_of(self, pod_uid: str) -> Path | None:
        """Temporary files of one pod; None where sockets in it would have too long a path."""
        path = self.scratch / pod_uid[:8]
        longest = len(os.fsencode(path)) + _TEMPORARY_NAME_BYTES
        return path if longest <= MAX_SOCKET_PATH else None

    def log_of(self, namespace: str, pod: str) -> Path:
        """Log of a pod: `POD.log`, in another namespace than `default` `NAMESPACE.POD.log`."""
        return self.logs / (f"{pod}.log" if namespace == "default" else f"{namespace}.{pod}.log")


@contextmanager
def locked(paths: NodePaths) -> Iterator[None]:
    """Hold the state directory: the kernel lets go of it when the process dies, however it dies.

    Raises:
        NodeError: Another node holds it.
    """
    lock = paths.lock_file.open("a+")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            msg = f"a node already runs on {paths.root} (process {holder})"
            raise NodeError(msg) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield
