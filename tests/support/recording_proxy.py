"""An HTTP proxy that keeps what it passes on: an independent witness of the engine's answers."""

import asyncio
import json
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class RecordingProxy:
    """Listens on a Unix socket and passes everything on to `upstream`."""

    def __init__(self, upstream: str, socket: Path) -> None:
        self.url = f"unix://{socket}"
        self.exchanges: list[tuple[dict[str, Any], dict[str, Any]]] = []
        self.refuse_paths: set[str] = set()
        self._upstream = httpx2.AsyncClient(base_url=upstream, timeout=120)
        methods = ["GET", "POST"]
        app = Starlette(routes=[Route("/{path:path}", self._pass_on, methods=methods)])
        config = uvicorn.Config(app, uds=str(socket), log_config=None, lifespan="off")
        self._server = uvicorn.Server(config)
        self._serving: asyncio.Task[None] | None = None

    async def _pass_on(self, request: Request) -> Response:
        if request.url.path in self.refuse_paths:
            return Response(status_code=403)
        sent = await request.body()
        answer = await self._upstream.request(
            request.method,
            request.url.path,
            content=sent,
            headers={"content-type": "application/json"},
        )
        if answer.status_code == 200 and sent:
            self.exchanges.append((json.loads(sent), answer.json()))
        return Response(answer.content, answer.status_code, media_type="application/json")

    async def __aenter__(self) -> Self:
        self._serving = asyncio.create_task(self._server._serve())
        while not self._server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.should_exit = True
        assert self._serving is not None
        await self._serving
        await self._upstream.aclose()
