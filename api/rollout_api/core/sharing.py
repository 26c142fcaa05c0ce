"""How leases are shared between jobs: by priority, and in turns among equals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby


@dataclass(frozen=True, slots=True)
class Candidate:
    """A job that may have work, in order of creation among its equals."""

    uid: str
    priority: int


def hand_out(
    capacity: int,
    candidates: Sequence[Candidate],
    rotation: int,
    take: Callable[[str, int], int],
) -> None:
    """Take up to `capacity` units, from the highest priority down.

    Args:
        capacity: Most units to take.
        candidates: The jobs, oldest first.
        rotation: Grows with every call, so that the first turn goes round.
        take: Takes up to so many units of a job and says how many it took.
    """
    ranked = sorted(candidates, key=lambda job: -job.priority)
    for _, equals in groupby(ranked, key=lambda job: job.priority):
        uids = [job.uid for job in equals]
        start = rotation % len(uids)
        capacity = _in_turns(capacity, uids[start:] + uids[:start], take)


def _in_turns(capacity: int, uids: list[str], take: Callable[[str, int], int]) -> int:
    while capacity > 0 and uids:
        share = max(1, capacity // len(uids))
        more: list[str] = []
        for uid in uids:
            asked = min(share, capacity)
            if asked == 0:
                break
            taken = take(uid, asked)
            capacity -= taken
            if taken == asked:
                more.append(uid)
        uids = more
    return capacity
