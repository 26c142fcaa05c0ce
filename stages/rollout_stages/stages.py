"""Builds the stage of a worker, when its first unit of work comes.

Sandboxes, tokenizers and templates are imported only then: a warm worker that waits costs little
more than an HTTP client.
"""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from rollout_crds.result import Stage
from rollout_crds.wire import StageResult
from rollout_stages.ports import StageRunner
from rollout_stages.settings import Settings
from rollout_stages.work import Work
from rollout_stages.worker import WorkerIdentity

_LONGEST_NAME = 40


class LazyStage:
    """The stage that the settings ask for. Use as an async context manager."""

    def __init__(self, settings: Settings, identity: WorkerIdentity) -> None:
        self._settings = settings
        self._owner = f"{identity.worker[:_LONGEST_NAME]}-{identity.incarnation[:8]}"
        self._stack = AsyncExitStack()
        self._stage: StageRunner | None = None

    async def run(self, work: Work) -> StageResult:
        """Do a unit of work."""
        if self._stage is None:
            self._stage = self._build()
        return await self._stage.run(work)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._stack.aclose()

    def _build(self) -> StageRunner:
        from rollout_stages.blobs import FsspecBlobStore
        from rollout_stages.sandboxes import NodeSandboxes

        settings = self._settings
        blobs = FsspecBlobStore(settings.blob_url)
        sandboxes = NodeSandboxes(
            settings.work_dir / "sandboxes", self._owner, blobs, settings.images
        )
        self._closing(sandboxes.aclose)
        match settings.stage:
            case Stage.INIT:
                from rollout_stages.init_stage import InitStage

                return InitStage(sandboxes)
            case Stage.RUN:
                from rollout_stages.engine.client import VLLMEngines
                from rollout_stages.run_stage import RunStage

                engines = VLLMEngines()
                self._closing(engines.aclose)
                return RunStage(sandboxes, engines, blobs, settings.models)
            case Stage.EVAL:
                from rollout_stages.eval_stage import EvalStage

                return EvalStage(sandboxes, blobs)

    def _closing(self, close: Callable[[], Awaitable[None]]) -> None:
        self._stack.push_async_callback(close)
