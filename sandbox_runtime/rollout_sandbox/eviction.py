"""Keeps a cache directory within a size by removing what was used longest ago and is not in use.

A user of an entry holds a shared lock on the entry's lock file (`.NAME.lock`), which also marks the
time of use. Whoever wants to remove it must get that lock alone, so an entry in use is never
removed, and the kernel frees the locks of a user that was killed.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from .disk import tree_bytes
from .trees import remove_tree


class Aged(NamedTuple):
    """An entry of a cache."""

    name: str
    used_at: float
    size_bytes: int


class Lease:
    """The use of some entries of caches; ends with `release`, or with the process."""

    def __init__(self) -> None:
        self._locks: list[int] = []

    def hold(self, entry: Path) -> None:
        """Hold an entry that exists, or is about to be made by the caller."""
        lock = _open_lock(entry)
        self._locks.append(lock)
        fcntl.flock(lock, fcntl.LOCK_SH)
        with contextlib.suppress(PermissionError):  # another user made it
            os.utime(lock)

    def release(self) -> None:
        """Let go of all entries; again is harmless."""
        while self._locks:
            os.close(self._locks.pop())


def lock_of(entry: Path) -> Path:
    """Return the file whose lock users of the entry hold."""
    return entry.with_name(f".{entry.name}.use")


def _open_lock(entry: Path) -> int:
    """Open for reading alone, which is enough to lock: the file may be another user's."""
    return os.open(lock_of(entry), os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)


def evict(cache: Path, limit_bytes: int) -> list[str]:
    """Remove unused entries, longest unused first, until the rest fits; return what was removed."""
    removed: list[str] = []
    entries = [_aged(path) for path in cache.iterdir() if not path.name.startswith(".")]
    for name in to_remove(entries, limit_bytes):
        if _remove_unused(cache / name):
            removed.append(name)
    return removed


def to_remove(entries: Iterable[Aged], limit_bytes: int) -> list[str]:
    """Return the entries to remove so that the others fit.

    >>> to_remove([Aged("old", 1, 5), Aged("new", 2, 5), Aged("older", 0, 1)], 6)
    ['older', 'old']
    """
    kept = sorted(entries, key=lambda entry: entry.used_at)
    excess = sum(entry.size_bytes for entry in kept) - limit_bytes
    removed: list[str] = []
    for entry in kept:
        if excess <= 0:
            break
        removed.append(entry.name)
        excess -= entry.size_bytes
    return removed


def _aged(path: Path) -> Aged:
    lock = lock_of(path)
    used_at = (lock if lock.exists() else path).stat().st_mtime
    return Aged(path.name, used_at, tree_bytes(path) if path.is_dir() else path.stat().st_size)


def _remove_unused(entry: Path) -> bool:
    lock = _open_lock(entry)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        # Moved first: what is half removed must not be taken for whole.
        doomed = entry.with_name(f".removing-{entry.name}")
        entry.rename(doomed)
        remove_tree(doomed)
        return True
    finally:
        os.close(lock)
