"""The process table as data: who descends from whom, and which zombies nobody waits for."""

import os
import signal
from collections.abc import Iterable
from typing import NamedTuple


class Process(NamedTuple):
    """One line of the process table."""

    pid: int
    state: str
    parent: int
    group: int
    session: int


def parse_stat(text: str) -> Process:
    """Parse `/proc/PID/stat`; the name in it may hold spaces and parentheses.

    >>> parse_stat("7 (a) b) S 1 7 7 0 -1")
    Process(pid=7, state='S', parent=1, group=7, session=7)
    """
    pid, rest = text.split(" (", 1)
    state, parent, group, session = rest[rest.rindex(")") + 2 :].split(" ", 4)[:4]
    return Process(int(pid), state, int(parent), int(group), int(session))


def process_table(proc: str = "/proc") -> list[Process]:
    """Return all processes that can be seen now."""
    table: list[Process] = []
    for entry in os.listdir(proc):  # noqa: PTH208 - hot: no Path object per process
        if entry.isdigit():
            try:
                with open(f"{proc}/{entry}/stat", errors="replace") as stat:  # noqa: PTH123
                    table.append(parse_stat(stat.read()))
            except OSError:
                continue
    return table


def descendants(table: Iterable[Process], roots: Iterable[int]) -> set[int]:
    """Return the processes that descend from `roots`, without the roots."""
    children: dict[int, list[int]] = {}
    for process in table:
        children.setdefault(process.parent, []).append(process.pid)
    found: set[int] = set()
    pending = list(roots)
    while pending:
        for child in children.get(pending.pop(), ()):
            if child not in found:
                found.add(child)
                pending.append(child)
    return found


def group_and_descendants(table: Iterable[Process], group: int) -> set[int]:
    """Return the members of a process group and all that descend from them."""
    table = list(table)
    members = {p.pid for p in table if p.group == group}
    return members | descendants(table, members)


def kill_all(pids: Iterable[int]) -> None:
    """Send SIGKILL; processes that are gone already do not matter."""
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


class Reaper:
    """Reaps orphans as process 1 must, without racing those who wait for their own children.

    A zombie is reaped when two scans in a row see it: a parent that waits for its child has done so
    long before the second one.
    """

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def scan(self, table: Iterable[Process], me: int) -> bool:
        """Reap what was a zombie child of `me` at the last scan and still is.

        Returns:
            Whether another scan is due.
        """
        zombies = {p.pid for p in table if p.parent == me and p.state == "Z"}
        for pid in zombies & self._seen:
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                continue
        self._seen = zombies
        return bool(zombies)
