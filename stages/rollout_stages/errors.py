"""Every failure of a stage is attributed to one boundary, once, where it is crossed.

Stage code wraps each crossing in `boundary(...)` with a table of the exceptions that are known
there. What is in the table becomes a `StageError` with a documented reason. What is not in it is a
defect of ours and reaches the worker as it is, which logs it and reports `InternalError`.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary, Failure, Stage

_MAX_MESSAGE = 2048


class StageError(Exception):
    """A classified failure of a stage.

    Attributes:
        where: Whose failure it is.
        reason: The cause, as documented in `rollout_crds.reasons`.
        message: What is wrong, where, and what to do, in a sentence.
        retryable: Another attempt may succeed.
        policy_error: The agent is to blame.
    """

    def __init__(
        self,
        where: Boundary,
        reason: FailureReason,
        message: str,
        *,
        retryable: bool,
        policy_error: bool = False,
    ) -> None:
        super().__init__(message)
        self.where = where
        self.reason = reason
        self.message = message
        self.retryable = retryable
        self.policy_error = policy_error

    def failure(self, stage: Stage, attempt: int) -> Failure:
        """The failure as the gateway records it."""
        return Failure(
            stage=stage,
            boundary=self.where,
            reason=self.reason.value,
            message=self.message[:_MAX_MESSAGE],
            attempt=attempt,
            retryable=self.retryable,
        )


@dataclass(frozen=True)
class Verdict:
    """What an exception means at a boundary."""

    reason: FailureReason
    retryable: bool
    policy_error: bool = False


Verdicts = Mapping[type[Exception], Verdict]


@asynccontextmanager
async def boundary(where: Boundary, verdicts: Verdicts, doing: str) -> AsyncIterator[None]:
    """Classify the exceptions of `verdicts` that escape; the first matching entry counts.

    Args:
        where: Whose failure they are.
        verdicts: From most to least specific class.
        doing: What was being done, as in "start the sandbox"; it opens the message.
    """
    try:
        yield
    except StageError:
        raise
    except Exception as error:
        verdict = next((v for kind, v in verdicts.items() if isinstance(error, kind)), None)
        if verdict is None:
            raise
        raise StageError(
            where,
            verdict.reason,
            f"cannot {doing}: {error or type(error).__name__}",
            retryable=verdict.retryable,
            policy_error=verdict.policy_error,
        ) from error
