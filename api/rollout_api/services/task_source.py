"""Reading a job's tasks, inline or from a JSONL file, in chunks small enough to store at once."""

from collections.abc import Iterator
from itertools import islice
from typing import BinaryIO, cast

import fsspec

from rollout_api.core.errors import TaskSourceError
from rollout_api.core.task_lines import Entry, NumberedTask, parse_lines
from rollout_crds.rolloutjob import TaskSource
from rollout_crds.taskfile import MAX_LINE_BYTES
from rollout_crds.validation import FieldError


def read_entries(source: TaskSource) -> Iterator[Entry]:
    """Yield the entries of a task source; blocks, so call it in a thread.

    Raises:
        TaskSourceError: The source can not be read.
    """
    if source.inline is not None:
        return (NumberedTask(line, task) for line, task in enumerate(source.inline, start=1))
    return _read_uri(source.uri or "")


def next_chunk(entries: Iterator[Entry], size: int) -> list[Entry]:
    """Take the next entries; empty at the end."""
    return list(islice(entries, size))


def _read_uri(uri: str) -> Iterator[Entry]:
    try:
        with fsspec.open(uri, "rb") as file:
            yield from parse_lines(enumerate(_lines(cast(BinaryIO, file)), start=1))
    except (OSError, ValueError, ImportError) as error:
        cause = getattr(error, "strerror", None) or str(error) or type(error).__name__
        message = f"can not be read: {uri}: {cause}; it must be a JSONL file, one task a line"
        field = FieldError("spec.tasks.uri", message)
        msg = f"task source {message}"
        raise TaskSourceError(msg, [field]) from error


def _lines(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines; what is beyond the longest allowed length is read but not kept."""
    while line := file.readline(MAX_LINE_BYTES + 1):
        whole = line
        while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES + 1)
        yield whole
