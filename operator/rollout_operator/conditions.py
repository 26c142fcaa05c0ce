"""Conditions are facts with a memory: the time is kept until the status changes.

A reconciler states all its facts anew each time, as `Fact`s; `merge` turns them into the full list
of conditions, taking over the transition times of those whose status did not change.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from rollout_crds.meta import Condition
from rollout_crds.reasons import ConditionType, Reason

ConditionStatus = Literal["True", "False", "Unknown"]
MAX_MESSAGE = 4096


@dataclass(frozen=True)
class Fact:
    """What is known now about one condition type."""

    type: ConditionType
    status: ConditionStatus
    reason: Reason
    message: str = ""


def merge(
    old: Sequence[Condition], facts: Iterable[Fact], generation: int, now: datetime
) -> list[Condition]:
    """The conditions that state `facts`, in their order."""
    before = {condition.type: condition for condition in old}
    return [_condition(before.get(fact.type), fact, generation, now) for fact in facts]


def _condition(old: Condition | None, fact: Fact, generation: int, now: datetime) -> Condition:
    kept = old is not None and old.status == fact.status
    return Condition(
        type=fact.type.value,
        status=fact.status,
        reason=fact.reason.value,
        message=fact.message[:MAX_MESSAGE],
        observed_generation=generation,
        last_transition_time=old.last_transition_time if old is not None and kept else now,
    )


def find(conditions: Sequence[Condition], kind: ConditionType) -> Condition | None:
    """The condition of a type, if it was ever stated."""
    return next((c for c in conditions if c.type == kind.value), None)


def is_true(conditions: Sequence[Condition], kind: ConditionType) -> bool:
    """Whether a condition was stated and is True."""
    condition = find(conditions, kind)
    return condition is not None and condition.status == "True"


def restate(condition: Condition) -> Fact:
    """The fact that a condition states, for one that must not change any more."""
    return Fact(
        ConditionType(condition.type),
        condition.status,
        Reason(condition.reason),
        condition.message,
    )
