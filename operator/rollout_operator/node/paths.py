"""The state directory: where everything of one node is, and the lock that makes it one."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rollout_operator.node.errors import NodeError

_MAX_SOCKET_PATH = 107
"""Bytes that a Unix socket's path may have on Linux."""


@dataclass(frozen=True)
class NodePaths:
    """Places in a state directory."""

    state: Path

    @property
    def run(self) -> Path:
        """Sockets and the ready file."""
        return self.state / "run"

    @property
    def logs(self) -> Path:
        """A log of each pod, and that of the node."""
        return self.state / "logs"

    @property
    def work(self) -> Path:
        """Scratch space of the stage workers."""
        return self.state / "work"

    @property
    def blobs(self) -> Path:
        """Artefacts that stages hand to one another."""
        return self.state / "blobs"

    @property
    def gateway_socket(self) -> Path:
        """Where the gateway listens."""
        return self.run / "gateway.sock"

    @property
    def ready_file(self) -> Path:
        """Exists while the node is ready: `{"pid": ..., "gateway_url": ...}`."""
        return self.run / "node.json"

    def make(self) -> None:
        """Make all directories, for their owner alone.

        Raises:
            NodeError: One cannot be made, or the path is too long for a socket.
        """
        length = len(os.fsencode(self.gateway_socket))
        if length > _MAX_SOCKET_PATH:
            msg = (
                f"state directory {self.state} is too long: a socket in it would have "
                f"{length} bytes, {_MAX_SOCKET_PATH} are possible: choose a shorter --state-dir"
            )
            raise NodeError(msg)
        try:
            self.state.parent.mkdir(parents=True, exist_ok=True)
            for directory in (self.state, self.run, self.logs, self.work, self.blobs):
                directory.mkdir(mode=0o700, exist_ok=True)
                directory.chmod(0o700)
        except OSError as error:
            msg = f"cannot make the state directory {self.state}: {error.strerror}"
            raise NodeError(msg) from error

    def log_of(self, namespace: str, pod: str) -> Path:
        """Log of a pod: `POD.log`, in another namespace than `default` `NAMESPACE.POD.log`."""
        return self.logs / (f"{pod}.log" if namespace == "default" else f"{namespace}.{pod}.log")


@contextmanager
def locked(paths: NodePaths) -> Iterator[None]:
    """Hold the state directory: the kernel lets go of it when the process dies, however it dies.

    Raises:
        NodeError: Another node holds it.
    """
    lock = (paths.state / "node.lock").open("a+")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            msg = f"a node already runs on {paths.state} (process {holder})"
            raise NodeError(msg) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield
