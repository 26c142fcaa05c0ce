"""Waiting times between attempts."""

import itertools
import random
from collections.abc import Iterator


def backoff(first_seconds: float, longest_seconds: float) -> Iterator[float]:
    """Yield waits that double up to a longest one, each shortened by up to a half at random.

    The randomness keeps workers that lost the same server from coming back in step.
    """
    for exponent in itertools.count():
        wait = min(longest_seconds, first_seconds * 2.0 ** min(exponent, 32))
        yield wait * random.uniform(0.5, 1.0)  # noqa: S311 - not for secrets
