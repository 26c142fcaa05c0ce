"""The process table as data."""

from rollout_sandbox.server.processes import (
    Process,
    descendants,
    group_and_descendants,
    parse_stat,
)


def process(pid: int, parent: int, group: int) -> Process:
    return Process(pid, "S", parent, group, group)


TABLE = [
    process(1, 0, 1),
    process(10, 1, 10),
    process(11, 10, 11),
    process(12, 11, 11),
    process(13, 12, 13),
    process(20, 1, 11),
]


def test_names_with_spaces_and_parentheses_are_parsed():
    assert parse_stat("42 (tmux: (x) R 9) Z 7 8 9 0 -1 4194560") == Process(42, "Z", 7, 8, 9)


def test_descendants_exclude_the_roots():
    assert descendants(TABLE, [10]) == {11, 12, 13}


def test_a_group_includes_orphans_and_what_left_it():
    assert group_and_descendants(TABLE, 11) == {11, 12, 13, 20}
