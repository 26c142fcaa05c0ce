"""The gateway as a stage worker sees it: say hello, lease, renew, complete."""

from types import TracebackType
from typing import Self

from pydantic import BaseModel

from rollout_client.errors import Conflict
from rollout_client.transport import Transport
from rollout_crds.wire import (
    Completion,
    Heartbeat,
    HeartbeatReply,
    Lease,
    LeaseRequest,
    WorkerHello,
)

LEASE_LOST = "LeaseLost"
_ANSWER_SECONDS = 10.0
_UPLOAD_SECONDS = 60.0
"""A completion carries a whole trajectory."""


class _Leases(BaseModel):
    leases: list[Lease]


class WorkerClient:
    """Internal API of the gateway for stage workers.

    Args:
        url: `unix:///path.sock` or `http(s)://host:port`.

    Every method raises `GatewayError`: `Unavailable` when there is no answer.
    """

    def __init__(self, url: str) -> None:
        self._transport = Transport(url)

    async def hello(self, hello: WorkerHello) -> None:
        """Announce a worker process; what earlier incarnations held is given back."""
        await self._post("workers", hello, _ANSWER_SECONDS)

    async def lease(self, request: LeaseRequest) -> list[Lease]:
        """Wait up to `request.wait_seconds` for work; none is an empty list."""
        answer = await self._post("leases", request, request.wait_seconds + _ANSWER_SECONDS)
        return _Leases.model_validate_json(answer).leases

    async def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        """Renew all leases of the worker and learn which of them to drop."""
        return HeartbeatReply.model_validate_json(
            await self._post("heartbeats", heartbeat, _ANSWER_SECONDS)
        )

    async def complete(self, completion: Completion) -> bool:
        """End a lease; False when it was lost before, so that the result does not count."""
        try:
            await self._post("completions", completion, _UPLOAD_SECONDS)
        except Conflict as error:
            if error.reason != LEASE_LOST:
                raise
            return False
        return True

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def _post(self, path: str, body: BaseModel, seconds: float) -> bytes:
        response = await self._transport.request(
            "POST",
            f"/internal/v1/{path}",
            body=body.model_dump_json(by_alias=True).encode(),
            timeout_seconds=seconds,
        )
        return response.content
