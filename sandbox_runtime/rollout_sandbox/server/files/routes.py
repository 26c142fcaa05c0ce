"""HTTP for the file tool: unpack, forward, pack. Blocking work runs in a thread."""

import asyncio

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..http import empty, model, parse, parse_query
from ..refusals import Code, Refusal
from .controller import FilesController
from .types import ExportRequest, ImportQuery, ListQuery, ReadQuery, WriteQuery

_PATHS = TypeAdapter(list[str])


def routes(controller: FilesController, transfer_bytes: int) -> list[Route]:
    """Return the routes of the file tool."""

    async def read(request: Request) -> Response:
        data = await asyncio.to_thread(controller.read, parse_query(request, ReadQuery))
        return Response(data, media_type="application/octet-stream")

    async def write(request: Request) -> Response:
        query = parse_query(request, WriteQuery)
        await asyncio.to_thread(controller.write, query, await _body(request, transfer_bytes))
        return empty()

    async def list_(request: Request) -> Response:
        query = parse_query(request, ListQuery)
        return model(await asyncio.to_thread(controller.list_directory, query))

    async def export(request: Request) -> Response:
        data = await asyncio.to_thread(controller.export, await parse(request, ExportRequest))
        return Response(data, media_type="application/x-tar")

    async def import_(request: Request) -> Response:
        paths = _paths(parse_query(request, ImportQuery))
        await asyncio.to_thread(controller.unpack, await _body(request, transfer_bytes), paths)
        return empty()

    return [
        Route("/v1/files/content", read, methods=["GET"]),
        Route("/v1/files/content", write, methods=["PUT"]),
        Route("/v1/files/list", list_, methods=["GET"]),
        Route("/v1/files/export", export, methods=["POST"]),
        Route("/v1/files/import", import_, methods=["POST"]),
    ]


def _paths(query: ImportQuery) -> list[str]:
    try:
        return _PATHS.validate_json(query.paths)
    except ValidationError as error:
        raise Refusal(Code.INVALID_REQUEST, f"`paths`: {error}") from error


async def _body(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise Refusal(Code.TOO_LARGE, f"the body holds more than {limit} bytes")
    return bytes(body)
