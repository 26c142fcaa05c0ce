"""Requests to a gateway that may be away for a while: asked again until it has answered.

What a worker has done must not be lost because the gateway restarts, so a result is offered until
it is taken, or until the gateway says that it does not want it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from rollout_client.backoff import backoff
from rollout_client.errors import GatewayError, Invalid
from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary, Failure, Stage
from rollout_crds.wire import Completion, Lease, LeaseRequest, StageFailed, WorkerHello
from rollout_stages.ports import Gateway

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
_PASSING = frozenset({408, 429})
_MAX_MESSAGE = 2048


@dataclass(frozen=True)
class RetryTiming:
    """Waits between attempts, in seconds."""

    first: float = 0.2
    longest: float = 5.0


class PersistentGateway:
    """The requests that a worker does not give up.

    Args:
        gateway: Asked again and again.
        timing: How often.
    """

    def __init__(self, gateway: Gateway, timing: RetryTiming) -> None:
        self._gateway = gateway
        self._timing = timing

    async def hello(self, hello: WorkerHello) -> None:
        """Announce the worker.

        Raises:
            Invalid: The request itself is wrong.
        """
        await self._ask("say hello", lambda: self._gateway.hello(hello), _is_invalid)

    async def lease(self, request: Callable[[], LeaseRequest]) -> list[Lease]:
        """Ask for work; the request is made anew for each attempt.

        Raises:
            Invalid: The request itself is wrong.
        """
        return await self._ask("lease", lambda: self._gateway.lease(request()), _is_invalid)

    async def complete(self, completion: Completion) -> None:
        """Deliver a result; one that the gateway refuses is replaced by a failure that says so."""
        work_id, attempt = completion.work_id, completion.attempt
        try:
            accepted = await self._ask(
                f"complete {work_id}", lambda: self._gateway.complete(completion), _stays_refused
            )
        except GatewayError as error:
            _log.error("%s attempt %d: result refused: %s", work_id, attempt, error)
            result = completion.result
            if not isinstance(result, StageFailed) or result.trajectory is not None:
                await self.complete(
                    completion.model_copy(update={"result": _refused(completion, error)})
                )
            return
        outcome = completion.result.kind if accepted else "lease lost"
        _log.info("%s attempt %d: %s", work_id, attempt, outcome)

    async def _ask(
        self,
        doing: str,
        request: Callable[[], Awaitable[_T]],
        is_final: Callable[[GatewayError], bool],
    ) -> _T:
        waits = backoff(self._timing.first, self._timing.longest)
        while True:
            try:
                return await request()
            except GatewayError as error:
                if is_final(error):
                    raise
                wait = next(waits)
                _log.warning("cannot %s, trying again in %.1f s: %s", doing, wait, error)
                await asyncio.sleep(wait)


def _is_invalid(error: GatewayError) -> bool:
    return isinstance(error, Invalid)


def _stays_refused(error: GatewayError) -> bool:
    return 400 <= error.status < 500 and error.status not in _PASSING


def _refused(completion: Completion, error: GatewayError) -> StageFailed:
    failure = Failure(
        stage=Stage(completion.work_id.partition(":")[0]),
        boundary=Boundary.WORKER,
        reason=FailureReason.INTERNAL_ERROR.value,
        message=f"the gateway refuses the result: {error}"[:_MAX_MESSAGE],
        attempt=completion.attempt,
        retryable=False,
    )
    return StageFailed(failure=failure)
