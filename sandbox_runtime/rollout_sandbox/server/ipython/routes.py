"""HTTP for the IPython tool: unpack, forward, pack."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..http import empty, model, parse
from .controller import IPythonController
from .types import IPythonRequest


def routes(controller: IPythonController) -> list[Route]:
    """Return the routes of the IPython tool."""

    async def run(request: Request) -> Response:
        return model(await controller.run(await parse(request, IPythonRequest)))

    async def restart(_: Request) -> Response:
        await controller.restart()
        return empty()

    return [
        Route("/v1/ipython/run", run, methods=["POST"]),
        Route("/v1/ipython/restart", restart, methods=["POST"]),
    ]
