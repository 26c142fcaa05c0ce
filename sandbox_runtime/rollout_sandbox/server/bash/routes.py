"""HTTP for the bash tool: unpack, forward, pack."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..http import empty, model, parse
from .controller import BashController
from .types import BashRequest


def routes(controller: BashController) -> list[Route]:
    """Return the routes of the bash tool."""

    async def run(request: Request) -> Response:
        return model(await controller.run(await parse(request, BashRequest)))

    async def restart(_: Request) -> Response:
        await controller.restart()
        return empty()

    return [
        Route("/v1/bash/run", run, methods=["POST"]),
        Route("/v1/bash/restart", restart, methods=["POST"]),
    ]
