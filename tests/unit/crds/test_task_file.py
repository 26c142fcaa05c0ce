"""A task file is read line by line: broken lines are reported, the others go on."""

import itertools
import json
from collections.abc import Iterator

import pytest

from rollout_crds.task import Task
from rollout_crds.taskfile import TaskLineError, read_tasks

GOOD = json.dumps({"id": "a", "instruction": "add"})

BROKEN = {
    "not JSON": ('{"id": "a"', "", "not valid JSON: Expecting ',' delimiter at column 11"),
    "not an object": ("[1]", "", "must be one JSON object, got a list"),
    "not UTF-8": (b'{"id": "\xff"}', "", "is not text in UTF-8"),
    "a key twice": ('{"id": "a", "id": "b"}', "", "must set `id` once in an object"),
    "not a number": ('{"id": NaN}', "", "must be JSON, which has no NaN"),
    "too deep": ("[" * 100_000, "", "is nested too deeply"),
    "no id": ('{"instruction": "x"}', "id", "must be set"),
    "a bad id": ('{"id": "a b", "instruction": "x"}', "id", "must start with a letter or digit"),
    "an empty instruction": ('{"id": "a", "instruction": ""}', "instruction", "must not be empty"),
    "an unknown field": (
        '{"id": "a", "instruction": "x", "answer": "1"}',
        "answer",
        "unknown field; valid fields: demonstration, environment, grading, id, instruction, "
        "metadata",
    ),
    "a number for a text": (
        '{"id": "a", "instruction": "x", "grading": {"answer": 42}}',
        "grading.answer",
        'must be a string, got the number 42; write "42"',
    ),
    "the same file twice": (
        '{"id": "a", "instruction": "x", "environment": {"files": [{"path": "f"}, {"path": "f"}]}}',
        "environment.files",
        "must not repeat `path` 'f'",
    ),
    "a mode beyond the permission bits": (
        '{"id": "a", "instruction": "x", "environment": {"files": [{"path": "f", "mode": 9999}]}}',
        "environment.files[0].mode",
        "must be less than or equal to 4095, got 9999",
    ),
}


@pytest.mark.parametrize(("line", "field", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_line_is_named_and_the_next_one_is_read(
    line: str | bytes, field: str, message: str
) -> None:
    error, task = read_tasks([line, GOOD])
    assert isinstance(error, TaskLineError)
    assert (error.line, error.field) == (1, field)
    assert message in error.message
    assert isinstance(task, Task)


def test_all_errors_of_a_line_are_told() -> None:
    (error,) = read_tasks(['{"id": "a", "instructon": "x"}'])
    assert isinstance(error, TaskLineError)
    assert error.message == (
        "must be set; also instructon: unknown field; did you mean `instruction`? valid fields: "
        "demonstration, environment, grading, id, instruction, metadata"
    )


def test_blank_lines_count_as_lines_and_as_nothing_else() -> None:
    tasks = list(read_tasks(["", GOOD, " \n", "{}"]))
    assert isinstance(tasks[0], Task)
    assert isinstance(tasks[1], TaskLineError)
    assert tasks[1].line == 4
    assert len(tasks) == 2


def test_an_id_counts_once() -> None:
    first, second = read_tasks([GOOD, GOOD])
    assert isinstance(first, Task)
    assert second == TaskLineError(
        line=2, field="id", message="must be unique; 'a' is also on line 1"
    )


def test_lines_are_read_only_when_they_are_asked_for() -> None:
    def endless() -> Iterator[str]:
        for number in itertools.count(1):
            yield json.dumps({"id": f"t{number}", "instruction": "x"})

    first_three = itertools.islice(read_tasks(endless()), 3)
    assert [task.id for task in first_three if isinstance(task, Task)] == ["t1", "t2", "t3"]
