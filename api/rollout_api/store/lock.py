"""One gateway per database file: a lock that the kernel drops with the process."""

import fcntl
import os
from pathlib import Path

from rollout_api.store.errors import DatabaseInUseError


class FileLock:
    """An exclusive lock on `PATH.lock`, held until `release` or the end of the process."""

    def __init__(self, database: Path) -> None:
        """Take the lock.

        Raises:
            DatabaseInUseError: Another process holds it.
        """
        path = database.with_name(f"{database.name}.lock")
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(self._descriptor, 32, 0).decode(errors="replace").strip()
            os.close(self._descriptor)
            msg = (
                f"database {database} is in use by another gateway (process {holder or '?'}): "
                "stop that one, or choose another --state-dir or --db"
            )
            raise DatabaseInUseError(msg) from None
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Give the lock up."""
        os.close(self._descriptor)
