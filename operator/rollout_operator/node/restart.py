"""Whether and when an ended program is started again: a kubelet's rules, but quicker."""

import signal
from dataclasses import dataclass
from typing import Literal

RestartPolicy = Literal["Always", "OnFailure", "Never"]

FIRST_DELAY_SECONDS = 0.5
LAST_DELAY_SECONDS = 30.0
STABLE_SECONDS = 30.0
"""A program that ran this long starts again without delay for its earlier failures."""


@dataclass(frozen=True)
class Verdict:
    """What follows from the end of a program."""

    phase: Literal["Running", "Succeeded", "Failed"]
    """`Running` when it is started again."""
    restart_in: float | None
    """Seconds to wait before that."""
    failures: int
    """Ends in quick succession so far."""


def after_exit(policy: RestartPolicy, code: int, ran_seconds: float, failures: int) -> Verdict:
    """Decide after a program ended.

    Args:
        policy: The pod's restart policy.
        code: Exit code; negative: the number of the signal that killed it.
        ran_seconds: How long it ran.
        failures: Those counted before.
    """
    if policy == "Never" or (policy == "OnFailure" and code == 0):
        return Verdict("Succeeded" if code == 0 else "Failed", None, failures)
    earlier = 0 if ran_seconds >= STABLE_SECONDS else failures
    delay = min(FIRST_DELAY_SECONDS * 2.0 ** min(earlier, 10), LAST_DELAY_SECONDS)
    return Verdict("Running", delay, earlier + 1)


def describe_exit(code: int) -> str:
    """An exit code in words."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
