"""How a check is declared and run."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ..manager import SandboxManager
from ..ports import Limits, SandboxSpec
from ..sandbox import Sandbox


class ConformanceFailure(AssertionError):
    """A backend does not do what the check says."""


@dataclass(frozen=True)
class Subject:
    """What is checked: a running manager and an image that its backend can enter."""

    manager: SandboxManager
    image: str

    @asynccontextmanager
    async def sandbox(self, *layers: str, limits: Limits | None = None) -> AsyncIterator[Sandbox]:
        """Start a sandbox of the image."""
        spec = SandboxSpec(image=self.image, layers=layers, limits=limits or Limits())
        async with self.manager.start(spec) as sandbox:
            yield sandbox


Check = Callable[[Subject], Awaitable[None]]
CHECKS: dict[str, Check] = {}


def check(function: Check) -> Check:
    """Register a check under its function's name."""
    CHECKS[function.__name__] = function
    return function


async def run_check(name: str, subject: Subject) -> None:
    """Run a check.

    Raises:
        ConformanceFailure: the backend does not do what the check says.
    """
    await CHECKS[name](subject)


def expect(condition: bool, what: str, *seen: object) -> None:
    """Raise unless `condition` holds; `seen` goes into the message."""
    if not condition:
        message = f"{what}; seen: {', '.join(map(repr, seen))}"
        raise ConformanceFailure(message)


async def expect_raises(kind: type[Exception], action: Awaitable[object]) -> None:
    """Raise unless `action` raises `kind`."""
    try:
        result = await action
    except kind:
        return
    message = f"{kind.__name__} was expected; seen: {result!r}"
    raise ConformanceFailure(message)
