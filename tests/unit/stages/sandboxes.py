"""Sandboxes in memory, for the code around them."""

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from rollout_crds.rolloutjob import Sandbox as SandboxSettings
from rollout_crds.wire import BlobRef, PreparedEnvironment
from rollout_stages.ports import CommandResult, Sandbox

LAYER = BlobRef(sha256="a" * 64, size=1)
Answer = Callable[["MemorySandbox", str], CommandResult]


def succeed(_: "MemorySandbox", command: str) -> CommandResult:
    return CommandResult(f"ran {command}", 0)


class MemorySandbox:
    """Files in a dictionary; commands are answered by a function."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.ran: list[str] = []
        self.files: dict[str, tuple[str, int]] = {}
        self.committed = False

    async def bash(self, command: str, timeout_seconds: float) -> CommandResult:
        del timeout_seconds
        self.ran.append(command)
        return self.answer(self, command)

    ipython = bash
    command = bash

    async def write(self, path: str, content: bytes, mode: int) -> None:
        self.files[path] = (content.decode(), mode)

    async def export(self, paths: Sequence[str]) -> bytes:
        del paths
        return json.dumps(self.files).encode()

    async def restore(self, archive: bytes, paths: Sequence[str]) -> None:
        del paths
        self.files = {path: (c, m) for path, (c, m) in json.loads(archive).items()}

    async def commit(self) -> BlobRef:
        self.committed = True
        return LAYER


class MemorySandboxes:
    """Starts sandboxes that all answer by one function, and keeps them."""

    def __init__(self, answer: Answer = succeed) -> None:
        self.answer = answer
        self.forks: list[tuple[PreparedEnvironment, MemorySandbox]] = []

    def check_image(self, image: str) -> None:
        del image

    @asynccontextmanager
    async def fork(
        self,
        environment: PreparedEnvironment,
        settings: SandboxSettings,
        action_seconds: float | None = None,
    ) -> AsyncIterator[Sandbox]:
        del settings, action_seconds
        sandbox = MemorySandbox(self.answer)
        self.forks.append((environment, sandbox))
        yield sandbox


@asynccontextmanager
async def never() -> AsyncIterator[Sandbox]:
    """A sandbox that must not be wanted."""
    raise AssertionError
    yield  # pragma: no cover
