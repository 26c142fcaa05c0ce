"""HTTP for the command tool: unpack, forward, pack."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ..http import model, parse
from .controller import CommandController
from .types import CommandRequest


def routes(controller: CommandController) -> list[Route]:
    """Return the routes of the command tool."""

    async def run(request: Request) -> Response:
        return model(await controller.run(await parse(request, CommandRequest)))

    return [Route("/v1/command/run", run, methods=["POST"])]
