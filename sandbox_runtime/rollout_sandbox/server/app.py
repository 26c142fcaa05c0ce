"""Puts the tools together into one application."""

import platform
import resource
from importlib.metadata import version

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .bash.controller import BashController
from .bash.routes import routes as bash_routes
from .command.controller import CommandController
from .command.routes import routes as command_routes
from .files.controller import FilesController
from .files.routes import routes as file_routes
from .http import model, refused
from .ipython.controller import IPythonController
from .ipython.routes import routes as ipython_routes
from .programs import find_bash, tool_environment
from .refusals import Refusal
from .types import Health, ServerConfig


def create_app(config: ServerConfig, own_env: dict[str, str]) -> Starlette:
    """Return the application; `own_env` is the environment the image gave to the server."""

    async def health(_: Request) -> Response:
        return model(_health(config, own_env))

    return Starlette(
        routes=[
            Route("/v1/health", health, methods=["GET"]),
            *bash_routes(BashController(config, own_env)),
            *command_routes(CommandController(config, own_env)),
            *ipython_routes(IPythonController(config, own_env)),
            *file_routes(FilesController(config), config.transfer_bytes),
        ],
        exception_handlers={Refusal: refused},
    )


def _health(config: ServerConfig, own_env: dict[str, str]) -> Health:
    return Health(
        python=platform.python_version(),
        bash=find_bash(tool_environment(own_env, config.env)),
        ipykernel=version("ipykernel"),
        rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )
