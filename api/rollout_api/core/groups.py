"""When a group is usable or failed, and when a job is complete."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GroupTally:
    """The rollouts of one group."""

    samples: int
    finished: int
    scored: int


@dataclass(frozen=True, slots=True)
class GroupVerdicts:
    """How many groups are settled, either way."""

    usable: int
    failed: int


def judge_groups(tallies: Iterable[GroupTally], minimum_usable: int) -> GroupVerdicts:
    """Count usable groups (enough scored rollouts) and failed ones (can not get enough)."""
    usable = failed = 0
    for tally in tallies:
        if tally.scored >= minimum_usable:
            usable += 1
        elif tally.scored + tally.samples - tally.finished < minimum_usable:
            failed += 1
    return GroupVerdicts(usable, failed)


def is_complete(*, loaded: bool, rollouts: int, finished: int) -> bool:
    """Whether no further record of the job can come."""
    return loaded and finished >= rollouts
