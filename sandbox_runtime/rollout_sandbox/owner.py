"""Who owns which sandbox directories, so that what a killed worker leaves is found and removed.

Each owner holds a lock on its directory for as long as it lives. A directory whose lock is free
belongs to nobody: `sweep` ends the processes recorded there and removes it.
"""

import fcntl
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .errors import SandboxUnavailable
from .server.processes import kill_all
from .trees import remove_tree

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


@dataclass(frozen=True)
class Owner:
    """A held owner directory."""

    directory: Path
    lock: int
    lock_path: Path

    def release(self) -> None:
        """Remove the directory and give the name back."""
        remove_tree(self.directory)
        self.lock_path.unlink(missing_ok=True)
        os.close(self.lock)


def claim(owners: Path, name: str) -> Owner:
    """Take the owner directory `name`, removing what a dead holder left in it.

    Raises:
        SandboxUnavailable: a live process holds it, or the name is not a plain file name.
    """
    if not _NAME.fullmatch(name):
        message = f"owner {name!r}: use up to 63 letters, digits, `.`, `_`, `-`"
        raise SandboxUnavailable(message)
    owners.mkdir(parents=True, exist_ok=True)
    lock = _try_lock(owners / f"{name}.lock")
    if lock is None:
        message = f"owner {name!r} is in use by a live process (lock {owners / name}.lock)"
        raise SandboxUnavailable(message)
    directory = owners / name
    _clear(directory)
    directory.mkdir()
    return Owner(directory, lock, owners / f"{name}.lock")


def sweep(owners: Path) -> list[str]:
    """Remove the directories of all dead owners; return their names."""
    swept: list[str] = []
    for directory in sorted(path for path in owners.glob("*") if path.is_dir()):
        lock = _try_lock(owners / f"{directory.name}.lock")
        if lock is not None:
            _clear(directory)
            (owners / f"{directory.name}.lock").unlink(missing_ok=True)
            os.close(lock)
            swept.append(directory.name)
    return swept


def record_processes(place: Path, pids: Iterable[int]) -> None:
    """Note a sandbox's processes, with their start times since ids are used again."""
    lines = "".join(f"{pid} {started}\n" for pid in pids if (started := start_time(pid)))
    scratch = place / ".pids"
    scratch.write_text(lines)
    scratch.replace(place / "pids")


def recorded_processes(place: Path) -> list[int]:
    """Return those of the noted processes that are still alive."""
    try:
        lines = (place / "pids").read_text().splitlines()
    except FileNotFoundError:
        return []
    noted = [line.split(" ", 1) for line in lines]
    return [int(pid) for pid, started in noted if start_time(int(pid)) == started]


def start_time(pid: int) -> str | None:
    """Return the kernel's start time of a process, None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text[text.rindex(")") + 2 :].split()[19]


def _try_lock(path: Path) -> int | None:
    """Lock the file at `path`; None if it is locked or was replaced meanwhile."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino == os.fstat(lock).st_ino:
            return lock
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(lock)
    return None


def _clear(directory: Path) -> None:
    for record in directory.glob("*/pids"):
        kill_all(recorded_processes(record.parent))
    remove_tree(directory)
