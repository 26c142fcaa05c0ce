"""Bounded logs: a file that has grown too large is copied aside and cut, while it is written to."""

import shutil
from collections.abc import Collection
from pathlib import Path

MAX_BYTES = 32 * 1024 * 1024
_TAIL_BYTES = 4096
MAX_OLD_LOGS = 200
"""Logs kept of pods that are gone."""


def rotate(log: Path, max_bytes: int = MAX_BYTES) -> None:
    """Keep one earlier part of a log that has become too large.

    Programs append to it, so that they go on at the new end. Lines written in the instant between
    the copy and the cut are lost.
    """
    if not log.exists() or log.stat().st_size <= max_bytes:
        return
    shutil.copyfile(log, log.with_suffix(".log.1"))
    with log.open("r+b") as file:
        file.truncate(0)


def last_line(log: Path, max_characters: int = 300) -> str:
    """The last line with text in a log: often the cause of a program's end."""
    if not log.exists():
        return ""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        lines = file.read().decode(errors="replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")[:max_characters]


def prune(directory: Path, in_use: Collection[Path], max_old: int = MAX_OLD_LOGS) -> None:
    """Remove the oldest logs of pods that are gone."""
    old = [log for log in directory.glob("*.log") if log not in in_use]
    old.sort(key=lambda log: log.stat().st_mtime, reverse=True)
    for log in old[max_old:]:
        log.unlink(missing_ok=True)
        log.with_suffix(".log.1").unlink(missing_ok=True)
