"""Reading tasks line by line: a broken line is reported and the others go on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from rollout_crds.task import Task

LONGEST_LINE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class InvalidTask:
    """A task that was refused."""

    line: int
    """1-based line of the file, or position in `inline`."""
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class NumberedTask:
    """A valid task."""

    line: int
    task: Task


def parse_lines(lines: Iterable[tuple[int, bytes]]) -> Iterator[NumberedTask | InvalidTask]:
    """Parse numbered JSONL lines; blank ones are skipped."""
    for number, line in lines:
        if line.isspace() or not line:
            continue
        yield _parse(number, line)


def refuse_duplicate(entry: NumberedTask, seen: set[str]) -> NumberedTask | InvalidTask:
    """Refuse a task whose id is in `seen`; otherwise add it there."""
    if entry.task.id in seen:
        message = f"must be unique within the job: {entry.task.id!r} was used before"
        return InvalidTask(entry.line, "id", message)
    seen.add(entry.task.id)
    return entry


def _parse(number: int, line: bytes) -> NumberedTask | InvalidTask:
    if len(line) > LONGEST_LINE_BYTES:
        return InvalidTask(number, "", f"must be at most {LONGEST_LINE_BYTES} bytes long")
    try:
        return NumberedTask(number, Task.model_validate_json(line))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        return InvalidTask(number, ".".join(map(str, first["loc"])), first["msg"])
