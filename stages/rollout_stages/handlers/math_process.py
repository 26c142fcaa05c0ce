"""Keeps one process that compares mathematical answers, and replaces it when it hangs or dies.

It is started by the first comparison, because the symbolic algebra that it loads is large, and
takes one comparison at a time.
"""

import asyncio
import json
import sys
from contextlib import suppress
from enum import StrEnum

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_stages.errors import StageError

_START_SECONDS = 60.0
_COMPARE_SECONDS = 10.0


class Comparison(StrEnum):
    """The outcome of a comparison."""

    EQUAL = "equal"
    DIFFERENT = "different"
    ANSWER_UNREADABLE = "answer unreadable"
    REFERENCE_UNREADABLE = "reference unreadable"
    GAVE_UP = "comparison took too long"


class _Died(Exception):
    pass


class MathProcess:
    """Compares answers in a child process.

    Args:
        compare_seconds: Longest comparison.
    """

    def __init__(self, compare_seconds: float = _COMPARE_SECONDS) -> None:
        self._seconds = compare_seconds
        self._lock = asyncio.Lock()
        self._child: asyncio.subprocess.Process | None = None

    async def compare(self, reference: str, answer: str) -> Comparison:
        """Tell whether two answers are equivalent.

        Raises:
            StageError: `GraderFailed`: the process cannot be started.
        """
        async with self._lock:
            child = await self._running()
            try:
                return await self._ask(child, reference, answer)
            except BaseException:
                await self._kill()
                raise

    async def aclose(self) -> None:
        """End the process."""
        async with self._lock:
            await self._kill()

    async def _ask(
        self, child: asyncio.subprocess.Process, reference: str, answer: str
    ) -> Comparison:
        assert child.stdin is not None  # noqa: S101 - piped
        request = {"reference": reference, "answer": answer}
        try:
            child.stdin.write(json.dumps(request).encode() + b"\n")
            if await self._line(child, self._seconds) != "reference read":
                return Comparison.REFERENCE_UNREADABLE
        except (TimeoutError, _Died):
            await self._kill()
            return Comparison.REFERENCE_UNREADABLE
        try:
            return Comparison(await self._line(child, self._seconds))
        except (TimeoutError, _Died):
            await self._kill()
            return Comparison.GAVE_UP

    async def _running(self) -> asyncio.subprocess.Process:
        if self._child is None or self._child.returncode is not None:
            self._child = await asyncio.create_subprocess_exec(
                *(sys.executable, "-I", "-m", "rollout_stages.handlers.math_child"),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            try:
                await self._line(self._child, _START_SECONDS)
            except (TimeoutError, _Died) as error:
                await self._kill()
                raise StageError(
                    Boundary.WORKER,
                    FailureReason.GRADER_FAILED,
                    "the process that compares mathematical answers does not start",
                    retryable=True,
                ) from error
        return self._child

    async def _line(self, child: asyncio.subprocess.Process, seconds: float) -> str:
        assert child.stdout is not None  # noqa: S101 - piped
        line = await asyncio.wait_for(child.stdout.readline(), seconds)
        if not line:
            raise _Died
        return line.decode().strip()

    async def _kill(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
