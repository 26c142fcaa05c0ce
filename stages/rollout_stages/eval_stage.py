"""EVAL: score in a fresh fork of the prepared environment, with only the artefact carried over."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.wire import EvalDone, Lease
from rollout_stages.errors import Verdict, Verdicts, boundary
from rollout_stages.handlers.protocol import ScoringContext, TaskHandler
from rollout_stages.handlers.registry import Handlers, check_task
from rollout_stages.init_stage import write_files
from rollout_stages.ports import BlobStore, Sandbox, Sandboxes
from rollout_stages.work import Work

_SCORE: Verdicts = {ValidationError: Verdict(FailureReason.GRADER_FAILED, retryable=False)}


class EvalStage:
    """Scores rollouts.

    Args:
        sandboxes: Where graders run.
        blobs: Where artefacts come from.
    """

    def __init__(self, sandboxes: Sandboxes, blobs: BlobStore) -> None:
        self._sandboxes = sandboxes
        self._blobs = blobs
        self._handlers = Handlers()

    async def run(self, work: Work) -> EvalDone:
        """Score one rollout."""
        lease = work.lease
        handler = self._handlers.find(lease.spec.handler)
        check_task(handler, lease.task, lease.spec)
        score = await handler.score(
            ScoringContext(
                task=lease.task,
                answer=lease.artifact.answer if lease.artifact else None,
                trajectory=lease.trajectory,
                graded=lambda: self._fork(lease, handler, with_artifact=True),
                untouched=lambda: self._fork(lease, handler, with_artifact=False),
            )
        )
        async with boundary(Boundary.TASK, _SCORE, "use the grader's score"):
            return EvalDone(
                reward=score.reward,
                reward_components=dict(score.components),
                details=dict(score.details),
            )

    @asynccontextmanager
    async def _fork(
        self, lease: Lease, handler: TaskHandler, *, with_artifact: bool
    ) -> AsyncIterator[Sandbox]:
        if lease.environment is None:
            msg = f"the lease of {lease.work_id} lacks the environment"
            raise ValueError(msg)
        seconds = float(lease.task.grading.timeout_seconds)
        async with self._sandboxes.fork(lease.environment, lease.spec.sandbox, seconds) as sandbox:
            if with_artifact:
                await self._carry_over(lease, handler, sandbox)
            await write_files(sandbox, lease.task.grading.files)
            yield sandbox

    async def _carry_over(self, lease: Lease, handler: TaskHandler, sandbox: Sandbox) -> None:
        if lease.artifact is not None and lease.artifact.files is not None:
            archive = await self._blobs.read(lease.artifact.files)
            paths = lease.task.grading.artifacts or handler.artifacts
            await sandbox.restore(archive, paths)
