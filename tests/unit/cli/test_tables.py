"""Words for times and numbers, and tables that line up."""

from datetime import UTC, datetime

import pytest

from rollout_client.cli.tables import age, duration, number, render_table, shorten


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0s"),
        (-3, "0s"),
        (59.6, "1m"),
        (200, "3m20s"),
        (3600, "1h"),
        (3605, "1h"),
        (90_061, "1d1h"),
    ],
)
def test_durations_have_at_most_two_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_an_age_is_the_time_since() -> None:
    now = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
    assert age("2026-01-01T12:00:00Z", now) == "30s"
    assert age(None, now) == "<unknown>"


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert render_table(["A", "LONG"], [["wide cell", "x"]]) == "A           LONG\nwide cell   x"


def test_numbers_drop_needless_decimals() -> None:
    assert [number(v) for v in (None, 0.0, 1.0, 0.256, 12.3)] == ["-", "0", "1", "0.26", "12.3"]
    assert number(100, 0) == "100"


def test_text_is_shortened_to_one_line() -> None:
    assert shorten("a\n  b", 10) == "a b"
    assert shorten("abcdefghij", 6) == "abc..."
