"""HTTP to a gateway: one connection pool, typed models in and out, typed errors.

Everything that speaks to the gateway goes through here, so that neither the HTTP library nor the
difference between a Unix socket and TCP is visible elsewhere.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import httpx2

from rollout_client.errors import error_from_problem, unreachable
from rollout_crds.locations import parse_server_url

DEFAULT_TIMEOUT_SECONDS = 30.0
_CONNECT_SECONDS = 5.0


class Transport:
    """Requests to the gateway at one URL.

    Args:
        url: `unix:///path.sock` or `http(s)://host:port`.
        headers: Sent with every request.

    Raises:
        ValueError: The URL is neither of the two.
    """

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None) -> None:
        address = parse_server_url(url)
        self.url = url
        self._http = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=address.socket_path),
            base_url=address.base_url,
            headers=dict(headers or {}),
            trust_env=False,
        )

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> httpx2.Response:
        """Send a request whose body, if any, is JSON, and return the 2xx answer, read to its end.

        Raises:
            GatewayError: The gateway refused it, or gave no answer (`Unavailable`).
        """
        async with self.stream(
            method,
            path,
            params=params,
            body=body,
            headers=headers,
            timeout_seconds=timeout_seconds,
        ) as response:
            await response.aread()
            return response

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> AsyncIterator[httpx2.Response]:
        """Send a request and hand out the 2xx answer before its body is read.

        Raises:
            GatewayError: As `request`; also when the answer breaks off while it is read.
        """
        sent = f"{method} {path}"
        content_type = {} if body is None else {"content-type": "application/json"}
        try:
            async with self._http.stream(
                method,
                path,
                params=params,
                content=body,
                headers={**content_type, **(headers or {})},
                timeout=httpx2.Timeout(timeout_seconds, connect=_CONNECT_SECONDS),
            ) as response:
                if not response.is_success:
                    await response.aread()
                    raise error_from_problem(response.status_code, _json(response), sent)
                yield response
        except httpx2.RequestError as error:
            raise unreachable(self.url, error, sent) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await asyncio.shield(self._http.aclose())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


def _json(response: httpx2.Response) -> object:
    try:
        body: object = response.json()
    except ValueError:
        return None
    return body
