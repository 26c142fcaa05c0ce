"""Requests that are sent again while the gateway restarts.

Every request of the public API is safe to repeat (`GET`, whole-object `PUT`, `DELETE`), so a lost
connection or a 503 is answered by trying again with growing pauses, for a bounded time.
"""

import asyncio
import json
import time
from collections.abc import Mapping

from rollout_client.backoff import backoff
from rollout_client.errors import Unavailable
from rollout_client.transport import Transport

Query = Mapping[str, str | int | float]


class GatewaySession:
    """A connection to one gateway that outlives the gateway's restarts.

    Args:
        url: `unix:///path.sock` or `http(s)://host:port`.
        patience_seconds: How long to go on trying while the gateway does not answer.
        timeout_seconds: Longest silence within one attempt.
    """

    def __init__(self, url: str, *, patience_seconds: float, timeout_seconds: float) -> None:
        self._transport = Transport(url)
        self._patience_seconds = patience_seconds
        self._timeout_seconds = timeout_seconds

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        hold_seconds: float = 0.0,
    ) -> bytes:
        """Send a request and return the body of the answer.

        Args:
            method: HTTP method.
            path: Path on the gateway.
            query: Query parameters.
            body: JSON body.
            hold_seconds: How long the gateway may hold a long poll open.

        Raises:
            GatewayError: The gateway refused, or did not answer for `patience_seconds`.
        """
        deadline = time.monotonic() + self._patience_seconds
        waits = backoff()
        while True:
            try:
                response = await self._transport.request(
                    method,
                    path,
                    params=query,
                    body=None if body is None else json.dumps(body).encode(),
                    timeout_seconds=self._timeout_seconds + hold_seconds,
                )
            except Unavailable:
                wait = next(waits)
                if time.monotonic() + wait > deadline:
                    raise
                await asyncio.sleep(wait)
            else:
                content: bytes = response.content
                return content
