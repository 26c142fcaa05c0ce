"""Plain tables and short words for times and numbers: pure functions from data to text."""

from collections.abc import Sequence
from datetime import UTC, datetime

_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def render_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table with columns as wide as their widest cell, three spaces apart."""
    table = [list(header), *[[printable(cell) for cell in row] for row in rows]]
    widths = [max(len(line[i]) for line in table) for i in range(len(header))]
    lines = (
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in table
    )
    return "\n".join(lines)


def duration(seconds: float) -> str:
    """Seconds in at most two units: `45s`, `3m20s`, `5d2h`."""
    left = max(0, round(seconds))
    parts: list[str] = []
    for unit, size in _UNITS:
        count, rest = divmod(left, size)
        if count:
            parts.append(f"{count}{unit}")
            left = rest
        elif parts:
            break
    return "".join(parts[:2]) or "0s"


def parse_time(text: object) -> datetime | None:
    """A time of a resource, or None when there is none."""
    if not isinstance(text, str) or not text:
        return None
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def age(text: object, now: datetime) -> str:
    """How long ago a time of a resource was."""
    time = parse_time(text)
    return duration((now - time).total_seconds()) if time else "<unknown>"


def number(value: float | None, digits: int = 2) -> str:
    """A number with at most `digits` decimals, or `-` when there is none."""
    if value is None:
        return "-"
    return f"{value:.{digits}f}".rstrip("0").rstrip(".") if digits else f"{value:.0f}"


def printable(text: str) -> str:
    r"""The text in one line, with escapes for what would steer a terminal.

    >>> printable("a\n b\x1b[2J")
    'a b\\x1b[2J'
    """
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def shorten(text: str, width: int) -> str:
    """The text in one line of at most `width` characters."""
    line = printable(text)
    return line if len(line) <= width else f"{line[: width - 3]}..."
