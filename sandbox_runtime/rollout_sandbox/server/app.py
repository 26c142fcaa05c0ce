"""From a request's path to the tool that answers it; a tool is imported when it is first asked for.

What no sandbox of a job uses (Jupyter, tar) thus costs none of them start time or memory.
"""

import resource
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from .guard import Guard
from .http import Request
from .messages import decode
from .programs import find_bash, tool_environment
from .refusals import Code, Refusal
from .types import Health, ServerConfig
from .watches import Watches

TOOLS = ("bash", "command", "files", "ipython")


class Action(NamedTuple):
    """One thing a tool does: `run(message, content)` returns a message, bytes or None."""

    kind: type[Any]
    run: Callable[[Any, memoryview], object]


class Context(NamedTuple):
    """What every tool is made of."""

    config: ServerConfig
    env: dict[str, str]
    """The tools' environment."""
    watches: Watches


class App:
    """All tools of one sandbox. Called by one thread per connection."""

    def __init__(self, context: Context, guard: Guard) -> None:
        self._context = context
        self._guard = guard
        self._tools: dict[str, dict[str, Action]] = {}
        self._importing = threading.Lock()

    def handle(self, request: Request) -> object:
        """Answer a request.

        Raises:
            Refusal: the request was understood and refused.
        """
        _, version, tool, *rest = [*request.path.split("/"), "", "", ""]
        if (version, tool) == ("v1", "health"):
            return self._health()
        action = self._actions(tool).get(rest[0]) if version == "v1" and tool in TOOLS else None
        if action is None:
            raise Refusal(Code.INVALID_REQUEST, f"there is no {request.path}")
        try:
            message = decode(action.kind, request.message)
        except ValueError as error:
            raise Refusal(Code.INVALID_REQUEST, str(error)) from error
        self._context.watches.wake()
        return self._with_note(action.run(message, request.content))

    def _with_note(self, result: Any) -> object:
        """Tell the agent when the guard has ended what it was running."""
        if not hasattr(result, "output") or not (note := self._guard.take_note()):
            return result
        return result._replace(output=result.output + note)

    def _actions(self, tool: str) -> dict[str, Action]:
        if tool not in self._tools:
            with self._importing:
                if tool not in self._tools:
                    module = import_module(f".{tool}.actions", __package__)
                    self._tools[tool] = module.actions(self._context)
        return self._tools[tool]

    def _health(self) -> Health:
        return Health(
            python=".".join(map(str, sys.version_info[:3])),
            bash=find_bash(self._context.env),
            rss_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )


def make_context(config: ServerConfig, own_env: dict[str, str], watches: Watches) -> Context:
    """Return the tools' context; `own_env` is the environment the image gave to the server."""
    return Context(config, tool_environment(own_env, config.env), watches)
