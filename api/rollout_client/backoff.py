"""Waiting times between attempts."""

import random
from collections.abc import Iterator


def backoff(first_seconds: float = 0.05, longest_seconds: float = 2.0) -> Iterator[float]:
    """Yield waits without end: doubling up to a longest one, each up to a half shorter at random.

    The randomness keeps clients that lost the same server from coming back in step.
    """
    wait = first_seconds
    while True:
        yield wait * random.uniform(0.5, 1.0)  # noqa: S311 - not for secrets
        wait = min(2 * wait, longest_seconds)
