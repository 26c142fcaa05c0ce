"""Whatever is in a task file, reading it yields tasks and reports, and never fails."""

import json

from hypothesis import given
from hypothesis import strategies as st

from rollout_api.core.ids import group_id, rollout_id
from rollout_api.core.task_lines import NumberedTask, parse_lines, refuse_duplicate
from rollout_crds.taskfile import MAX_LINE_BYTES, TaskLineError

VALID = st.builds(
    lambda name: json.dumps({"id": name, "instruction": "x"}).encode(), st.sampled_from("abc")
)


@given(st.lists(st.one_of(st.binary(max_size=30).map(lambda b: b.replace(b"\n", b"")), VALID)))
def test_every_line_is_a_task_a_report_or_blank(lines: list[bytes]) -> None:
    seen: set[str] = set()
    entries = [
        refuse_duplicate(entry, seen) if isinstance(entry, NumberedTask) else entry
        for entry in parse_lines(enumerate(lines, start=1))
    ]
    assert [e.line for e in entries] == [n for n, text in enumerate(lines, 1) if text.strip()]
    ids = [e.task.id for e in entries if isinstance(e, NumberedTask)]
    assert len(ids) == len(set(ids))
    assert all(e.message for e in entries if isinstance(e, TaskLineError))


def test_a_line_that_is_too_long_is_reported() -> None:
    (entry,) = parse_lines([(7, b"x" * (MAX_LINE_BYTES + 1))])
    assert isinstance(entry, TaskLineError)
    assert entry.line == 7


def test_ids_follow_from_what_they_identify() -> None:
    group = group_id("uid", "task")
    assert group == group_id("uid", "task")
    assert len({group, group_id("uid2", "task"), group_id("uid", "task2")}) == 3
    assert rollout_id(group, 1) != rollout_id(group, 2)
