"""What tests ask about processes, and how they wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import psutil


def wait_until(reached: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Look until something holds; fails with what was waited for."""
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.05)


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that still run; one that has ended and waits for init to reap it does not."""
    return [process for process in processes if _runs(process)]


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
