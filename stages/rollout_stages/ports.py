"""What the stages need of the outside, as small protocols.

Adapters are in `sandboxes` (rollout_sandbox), `engine` (vLLM), `blobs` (fsspec) and in
`rollout_client.worker` (the gateway).
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
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
    """Files addressed by their content."""

    async def put(self, source: Path) -> BlobRef:
        """Store a file; storing the same content again changes nothing."""
        ...

    async def fetch(self, ref: BlobRef, destination: Path) -> None:
        """Copy a blob to a local file, checking its content."""
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
    """A running sandbox.

    Raises errors of `rollout_sandbox.errors`; commands that fail or time out are results.
    """

    async def bash(self, command: str, timeout_seconds: float) -> CommandResult:
        """Run a command in the agent's persistent shell."""
        ...

    async def ipython(self, code: str, timeout_seconds: float) -> CommandResult:
        """Run a cell in the agent's persistent kernel."""
        ...

    async def command(self, script: str, timeout_seconds: float) -> CommandResult:
        """Run a script in the working directory, in a process of its own."""
        ...

    async def write(self, path: str, content: bytes, mode: int) -> None:
        """Write a file; relative paths are below the working directory."""
        ...

    async def export(self, paths: Sequence[str], destination: Path) -> None:
        """Copy files and directories into a tar archive on the host; missing ones are left out."""
        ...

    async def restore(self, archive: Path, paths: Sequence[str]) -> None:
        """Replace `paths` by what an archive of `export` holds of them."""
        ...

    async def commit(self) -> BlobRef:
        """Store what was changed as a layer; the sandbox is finished by it."""
        ...


class Sandboxes(Protocol):
    """Starts sandboxes on this node."""

    def resolve(self, image: str) -> str:
        """The image as this node finds it.

        Raises:
            rollout_sandbox.errors.ImageNotFound: It is not there.
        """
        ...

    def fork(
        self,
        environment: PreparedEnvironment,
        settings: SandboxSettings,
        *,
        action_seconds: float | None = None,
    ) -> AbstractAsyncContextManager[Sandbox]:
        """A new sandbox over the prepared environment, gone when the context ends.

        Args:
            environment: Image, and the layer over it.
            settings: The job's sandbox settings.
            action_seconds: Longest command, when not that of the settings.
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
