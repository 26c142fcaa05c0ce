"""Pauses between attempts."""

from collections.abc import Iterator


def pauses(first: float = 0.05, longest: float = 2.0) -> Iterator[float]:
    """Seconds to wait before each further attempt: doubling, up to `longest`."""
    pause = first
    while True:
        yield pause
        pause = min(pause * 2, longest)
