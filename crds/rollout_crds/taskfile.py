"""Task files: one JSON task a line, read as a stream.

A broken line is reported and the others go on, because one bad task out of thousands is no reason
to lose the rest.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from pydantic import ValidationError

from rollout_crds.base import DataModel
from rollout_crds.task import Task
from rollout_crds.validation import describe, field_errors, validate

MAX_LINE_BYTES = 32 * 1024 * 1024


class TaskLineError(DataModel):
    """Why a line was refused."""

    line: int
    """1-based."""
    field: str
    """Path of the first wrong field, empty for the whole line."""
    message: str
    """What is wrong and the remedy, for all wrong fields of the line."""


def read_tasks(lines: Iterable[str | bytes]) -> Iterator[Task | TaskLineError]:
    """Read tasks line by line; blank lines are skipped, and an id counts once."""
    seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        task = parse_task(line, number)
        if isinstance(task, Task) and task.id in seen:
            message = f"must be unique; {task.id!r} is also on line {seen[task.id]}"
            task = TaskLineError(line=number, field="id", message=message)
        elif isinstance(task, Task):
            seen[task.id] = number
        yield task


def parse_task(line: str | bytes, number: int) -> Task | TaskLineError:
    """Read one line that is not blank."""
    if len(line) > MAX_LINE_BYTES:
        limit = f"must be at most {MAX_LINE_BYTES // 1024**2} MiB long"
        return TaskLineError(line=number, field="", message=limit)
    try:
        return validate(Task, _parse(line))
    except ValidationError as error:
        return _line_error(error, number)
    except (ValueError, RecursionError) as error:
        return TaskLineError(line=number, field="", message=_not_json(error))


def _parse(line: str | bytes) -> dict[str, Any]:
    data = json.loads(line, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    if not isinstance(data, dict):
        msg = f"must be one JSON object, got {describe(data)}"
        raise ValueError(msg)
    return data


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            msg = f"must set `{key}` once in an object"
            raise ValueError(msg)
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    msg = f"must be JSON, which has no {name}"
    raise ValueError(msg)


def _line_error(error: ValidationError, number: int) -> TaskLineError:
    first, *others = field_errors(error, Task)
    also = "".join(f"; also {other.field}: {other.message}" for other in others)
    return TaskLineError(line=number, field=first.field, message=f"{first.message}{also}")


def _not_json(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg} at column {error.colno}; write one task a line"
    if isinstance(error, UnicodeDecodeError):
        return "is not text in UTF-8; save the file as UTF-8"
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return str(error)
