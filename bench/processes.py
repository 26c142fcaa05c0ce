"""CPU time and memory of the system's processes, from /proc."""

from pathlib import Path

import psutil


def cpu_seconds(root: int) -> float:
    """User and system time of a process, its live descendants and those they have reaped."""
    return sum(
        times.user + times.system + times.children_user + times.children_system
        for times in (process.cpu_times() for process in tree(root))
    )


def pss_mebibytes(pid: int) -> float:
    """Proportional set size of one process."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def tree(root: int) -> list[psutil.Process]:
    """A process and its live descendants."""
    parent = psutil.Process(root)
    return [parent, *parent.children(recursive=True)]
