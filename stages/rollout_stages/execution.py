"""One unit of work from lease to result: the deadline, and what an exception means.

Whatever a stage does, one result comes out: what it returns, the failure it raised, a deadline, a
defect of ours. Only cancellation passes through, because the worker knows why it cancelled.
"""

import asyncio
import logging

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.wire import StageFailed, StageResult
from rollout_stages.errors import StageError
from rollout_stages.ports import StageRunner
from rollout_stages.work import Work

_log = logging.getLogger(__name__)


async def execute(stage: StageRunner, work: Work) -> StageResult:
    """Run the stage on `work` until it ends or its active time runs out."""
    limit = asyncio.timeout_at(work.deadline)
    try:
        async with limit:
            return await stage.run(work)
    except StageError as error:
        return _failed(work, error)
    except TimeoutError:
        if limit.expired():
            return _failed(work, _deadline_exceeded(work))
        return _failed(work, _defect(work))
    except Exception:
        return _failed(work, _defect(work))


def _failed(work: Work, error: StageError) -> StageFailed:
    lease = work.lease
    _log.warning("%s attempt %d: %s: %s", lease.work_id, lease.attempt, error.reason, error)
    return StageFailed(
        failure=error.failure(lease.stage, lease.attempt),
        policy_error=error.policy_error,
        trajectory=work.so_far("deadline" if error.where is Boundary.DEADLINE else "failed"),
    )


def _deadline_exceeded(work: Work) -> StageError:
    seconds = work.lease.active_deadline_seconds
    return StageError(
        Boundary.DEADLINE,
        FailureReason.STAGE_DEADLINE_EXCEEDED,
        f"the stage was not done after {seconds} s of active time; raise "
        f"`stages.{work.lease.stage}.activeDeadlineSeconds` if it needs more",
        retryable=False,
    )


def _defect(work: Work) -> StageError:
    """Must be called while the exception is handled: the log gets its traceback."""
    _log.exception("%s attempt %d: unexpected error", work.lease.work_id, work.lease.attempt)
    return StageError(
        Boundary.WORKER,
        FailureReason.INTERNAL_ERROR,
        "unexpected error in the stage worker; its log has the traceback",
        retryable=True,
    )
