"""Holds the sandbox as a whole to its limits of memory and of processes.

Rlimits bind single processes, and some bind nothing when the host's user is root. So process 1 sums
up what all the others use, and when that is too much ends them all at once: one `kill(-1)`, which
no fork bomb outruns. That is an answer to the agent, told in the output of what it was running.

Memory is counted as anonymous pages, and the larger of what the sandbox's tmpfs hold and of the
largest shared mapping. Between two looks it can overshoot.
"""

import os
import signal
from collections.abc import Callable, Iterable
from typing import NamedTuple

from .types import ServerConfig


class Usage(NamedTuple):
    """What some processes use together."""

    anonymous: int
    shared: int
    tasks: int


def parse_status(text: str) -> Usage:
    r"""Parse `/proc/PID/status`; sizes become bytes.

    What process 1 is about to reap is no task any more.

    >>> parse_status("State:\tS\nPPid:\t1\nRssAnon:\t  8 kB\nRssShmem:\t 4 kB\nThreads:\t2\n")
    Usage(anonymous=8192, shared=4096, tasks=2)
    """
    fields = dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)
    anonymous, shared = (
        int(fields.get(name, "0 kB").split()[0]) * 1024 for name in ("RssAnon", "RssShmem")
    )
    orphaned = fields["State"].startswith("Z") and fields["PPid"] == "1"
    return Usage(anonymous, shared, 0 if orphaned else int(fields["Threads"]))


def total(usages: Iterable[Usage], tmpfs_bytes: int) -> tuple[int, int]:
    """Return memory in bytes, and the number of processes and threads."""
    anonymous = shared = tasks = 0
    for usage in usages:
        anonymous += usage.anonymous
        shared = max(shared, usage.shared)
        tasks += usage.tasks
    return anonymous + max(shared, tmpfs_bytes), tasks


def excess(memory: int, tasks: int, config: ServerConfig) -> str | None:
    """Say which limit is exceeded, None where none is."""
    if config.processes is not None and tasks > config.processes:
        return f"{tasks} processes and threads, over the limit of {config.processes}"
    if config.memory_bytes is not None and memory > config.memory_bytes:
        return f"{memory >> 20} MiB of memory, over the limit of {config.memory_bytes >> 20} MiB"
    return None


class Guard:
    """Checks now and then, and remembers what it did until somebody asks."""

    def __init__(self, config: ServerConfig, end_all: Callable[[], None] | None = None) -> None:
        self._config = config
        self._end_all = end_all or _end_all
        self._tmpfs = _tmpfs_places()
        self._tmpfs_before = self._tmpfs_bytes()
        self._note = ""

    def check(self) -> bool:
        """End all processes if a limit is exceeded; return whether there are any processes."""
        usages = _usages()
        problem = excess(*total(usages, self._tmpfs_bytes() - self._tmpfs_before), self._config)
        if problem is not None:
            self._note = f"\n[all processes of the sandbox were ended: {problem}]\n"
            self._end_all()
        return bool(usages)

    def take_note(self) -> str:
        """Return what happened since the last call, for the agent to read."""
        note, self._note = self._note, ""
        return note

    def _tmpfs_bytes(self) -> int:
        used = 0
        for place in self._tmpfs:
            status = os.statvfs(place)
            used += (status.f_blocks - status.f_bfree) * status.f_frsize
        return used


def _end_all() -> None:
    assert os.getpid() == 1  # noqa: S101 - elsewhere it would end the caller's whole session
    os.kill(-1, signal.SIGKILL)


def _usages() -> list[Usage]:
    """Return the usage of each process but this one."""
    found: list[Usage] = []
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib is not loaded here
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                with open(f"/proc/{entry}/status", errors="replace") as status:  # noqa: PTH123
                    found.append(parse_status(status.read()))
            except OSError:
                continue
    return found


def _tmpfs_places() -> list[str]:
    """Return one mount point of each tmpfs that can be reached."""
    places: dict[int, str] = {}
    with open("/proc/self/mounts", errors="replace") as mounts:  # noqa: PTH123
        for line in mounts:
            _, place, kind, *_ = line.split(" ")
            if kind == "tmpfs":
                try:
                    places[os.stat(place).st_dev] = place  # noqa: PTH116
                except OSError:
                    continue
    return list(places.values())
