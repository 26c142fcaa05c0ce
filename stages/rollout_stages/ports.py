"""What the stages need of the outside, as small protocols.

Adapters are in `sandboxes` (rollout_sandbox), `engine` (vLLM), `blobs` (fsspec) and in
`rollout_client.worker` (the gateway).
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from rollout_crds.llmpool import LLMPoolSpec
from rollout_crds.rolloutjob import Sandbox as SandboxSettings
from rollout_crds.trajectory import FinishReason, SamplingParams, WeightVersionSpan
from rollout_crds.wire import (
    BlobRef,
    Completion,
    Heartbeat,
    HeartbeatReply,
    Lease,
    LeaseRequest,
    PreparedEnvironment,
    StageResult,
    WorkerHello,
)
from rollout_stages.work import Work


class Gateway(Protocol):
    """The gateway as a worker sees it; every method raises `rollout_client.GatewayError`."""

    async def hello(self, hello: WorkerHello) -> None:
        """Announce a worker process."""
        ...

    async def lease(self, request: LeaseRequest) -> list[Lease]:
        """Wait for work."""
        ...

    async def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        """Renew all leases."""
        ...

    async def complete(self, completion: Completion) -> bool:
        """End a lease; False when it was lost before."""
        ...


class BlobStore(Protocol):
    """Content addressed by its hash; raises `StageError` with reason `BlobUnavailable`."""

    async def put(self, content: bytes) -> BlobRef:
        """Store content; storing the same again changes nothing."""
        ...

    async def read(self, ref: BlobRef) -> bytes:
        """Content of a blob, checked."""
        ...


@dataclass(frozen=True)
class CommandResult:
    """What a command or a cell printed and how it ended."""

    output: str
    exit_code: int | None = None
    """None of an IPython cell, and where the command could not tell."""
    timed_out: bool = False
    notice: str = ""
    """What the reader must know besides, such as that the shell was restarted."""


class Sandbox(Protocol):
    """A running sandbox; relative paths are below its working directory.

    Commands that fail or time out are results. Every method raises `StageError` when the sandbox is
    broken (retryable), or when it refuses a path that a task names (not retryable).
    """

    async def bash(self, command: str, timeout_seconds: float) -> CommandResult:
        """Run a command in the agent's persistent shell."""
        ...

    async def ipython(self, code: str, timeout_seconds: float) -> CommandResult:
        """Run a cell in the agent's persistent kernel."""
        ...

    async def command(self, script: str, timeout_seconds: float) -> CommandResult:
        """Run a script in a process of its own."""
        ...

    async def write(self, path: str, content: bytes, mode: int) -> None:
        """Write a file."""
        ...

    async def export(self, paths: Sequence[str]) -> bytes:
        """Tar archive of files and directories; those that do not exist are left out.

        Raises:
            StageError: `ArtifactUnusable`, by the agent's fault.
        """
        ...

    async def restore(self, archive: bytes, paths: Sequence[str]) -> None:
        """Replace `paths` by what an archive of `export` holds of them.

        Raises:
            StageError: `ArtifactUnusable`, by the agent's fault.
        """
        ...

    async def commit(self) -> BlobRef:
        """Store what was changed as a layer; the sandbox is finished by it."""
        ...


class Sandboxes(Protocol):
    """Starts sandboxes on this node."""

    def check_image(self, image: str) -> None:
        """Find out early whether an image is on this node.

        Raises:
            StageError: `ImageNotFound`.
        """
        ...

    def fork(
        self,
        environment: PreparedEnvironment,
        settings: SandboxSettings,
        action_seconds: float | None = None,
    ) -> AbstractAsyncContextManager[Sandbox]:
        """A new sandbox over a prepared environment, gone when the context ends.

        Args:
            environment: Image, and the layer over it.
            settings: The job's sandbox settings.
            action_seconds: Longest command, when not that of the settings.

        Raises:
            StageError: It cannot be started.
        """
        ...


@dataclass(frozen=True)
class Prompt:
    """One request for tokens."""

    token_ids: tuple[int, ...]
    sampling: SamplingParams
    forced_text: str | None = None
    """Constrain the output to this text."""
    stop_token_ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Generation:
    """What an engine returned, unchanged."""

    request_id: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    started_at: float
    """Unix time in seconds of the attempt that succeeded."""
    duration_seconds: float
    weight_versions: tuple[WeightVersionSpan, ...] = ()
    cached_prompt_tokens: int | None = None


class Engine(Protocol):
    """One inference server."""

    async def generate(self, prompt: Prompt, deadline: float) -> Generation:
        """Sample; waits through pauses and restarts of the server.

        Args:
            prompt: Token ids and sampling parameters.
            deadline: Give up at this time of the event loop's clock, in seconds.

        Raises:
            StageError: `ModelUnavailable` or `ModelRequestRefused`.
        """
        ...


class Engines(Protocol):
    """The inference servers, by URL."""

    def at(self, url: str, pool: LLMPoolSpec) -> Engine:
        """The server at `url`; the same one for the same URL."""
        ...


class StageRunner(Protocol):
    """The work of one stage."""

    async def run(self, work: Work) -> StageResult:
        """Do it.

        Raises:
            StageError: It could not be done.
        """
        ...
