"""When a wait is over: the condition is there, cannot come any more, or does not come in time."""

import time
from collections.abc import Sequence

from rollout_client.errors import ConditionFailed, WaitTimeout
from rollout_crds.meta import Condition
from rollout_crds.reasons import ConditionType

_FINAL_IF_FALSE = {ConditionType.ACCEPTED, ConditionType.SUCCEEDED}
"""One of these that is False means that a job will not succeed."""


class Deadline:
    """The end of a wait.

    Args:
        seconds: From now on; None: there is no end.
        what: What is waited for, for the message of the error.
    """

    def __init__(self, seconds: float | None, what: str) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._message = f"{what} not reached within {seconds:g} s" if seconds is not None else ""

    def remaining(self, most: float) -> float:
        """Seconds left, at most `most`.

        Raises:
            WaitTimeout: There are none.
        """
        if self._end is None:
            return most
        left = self._end - time.monotonic()
        if left <= 0:
            raise WaitTimeout(self._message)
        return min(left, most)


def is_reached(conditions: Sequence[Condition], wanted: str) -> bool:
    """Whether a condition is True.

    Raises:
        ConditionFailed: `Succeeded` is wanted and cannot come any more.
    """
    if wanted == ConditionType.SUCCEEDED:
        for condition in conditions:
            if condition.type in _FINAL_IF_FALSE and condition.status == "False":
                raise ConditionFailed(condition.type, condition.reason, condition.message)
    return any(c.type == wanted and c.status == "True" for c in conditions)
