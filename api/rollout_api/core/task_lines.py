"""Tasks with the lines that they stand on: a broken line is reported and the others go on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rollout_crds.task import Task
from rollout_crds.taskfile import TaskLineError, parse_task


@dataclass(frozen=True, slots=True)
class NumberedTask:
    """A valid task."""

    line: int
    """1-based line of the file, or position in `inline`."""
    task: Task


Entry = NumberedTask | TaskLineError


def parse_lines(lines: Iterable[tuple[int, bytes]]) -> Iterator[Entry]:
    """Parse numbered JSONL lines; blank ones are skipped."""
    for number, line in lines:
        if line.strip():
            task = parse_task(line, number)
            yield NumberedTask(number, task) if isinstance(task, Task) else task


def refuse_duplicate(entry: NumberedTask, seen: set[str]) -> Entry:
    """Refuse a task whose id is in `seen`; otherwise add it there."""
    if entry.task.id in seen:
        message = f"must be unique within the job; {entry.task.id!r} was used before"
        return TaskLineError(line=entry.line, field="id", message=message)
    seen.add(entry.task.id)
    return entry
