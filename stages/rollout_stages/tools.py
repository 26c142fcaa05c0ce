"""The tools of the built-in agent: what the model is told of them, and how a call is answered.

Whatever the model asks for has an answer in text: an unknown tool, wrong arguments and a command
that fails or runs out of time are told to the model. Only a broken sandbox is an error.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rollout_crds.rolloutjob import ToolName
from rollout_crds.trajectory import ToolCall
from rollout_stages.ports import CommandResult, Sandbox

_ARGUMENT: Mapping[str, str] = {"bash": "command", "ipython": "code"}
_DESCRIPTIONS: dict[ToolName, tuple[str, str]] = {
    "bash": (
        "Run a command in a persistent bash session and return what it prints.",
        "The command, of any number of lines.",
    ),
    "ipython": (
        "Run a cell in a persistent IPython session and return its output.",
        "The Python code of the cell.",
    ),
}


def schemas(names: Sequence[ToolName]) -> list[dict[str, Any]]:
    """JSON schemas of the tools, in the form of OpenAI function definitions."""
    return [_schema(name) for name in names]


def _schema(name: ToolName) -> dict[str, Any]:
    description, argument = _DESCRIPTIONS[name]
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {
                "type": "object",
                "properties": {_ARGUMENT[name]: {"type": "string", "description": argument}},
                "required": [_ARGUMENT[name]],
            },
        },
    }


class ToolBox:
    """The tools of one rollout, in its sandbox.

    Args:
        names: The tools that the job allows.
        sandbox: Where they run.
        timeout_seconds: Wall time of one call.
    """

    def __init__(self, names: Sequence[ToolName], sandbox: Sandbox, timeout_seconds: float) -> None:
        self._names = tuple(names)
        self._sandbox = sandbox
        self._timeout = timeout_seconds

    async def call(self, call: ToolCall) -> str:
        """Answer a call.

        Raises:
            StageError: The sandbox is broken.
        """
        name = next((n for n in self._names if n == call.name), None)
        if name is None:
            return f"error: there is no tool {call.name!r}; there are: {', '.join(self._names)}"
        argument = call.arguments.get(_ARGUMENT[name])
        if not isinstance(argument, str) or len(call.arguments) != 1:
            return f'error: {name} takes exactly one argument, the string "{_ARGUMENT[name]}"'
        if "\0" in argument:
            return f"error: the {_ARGUMENT[name]} contains a NUL character"
        run = self._sandbox.bash if name == "bash" else self._sandbox.ipython
        return self._answer(await run(argument, self._timeout))

    def _answer(self, result: CommandResult) -> str:
        notes = [result.notice] if result.notice else []
        if result.timed_out:
            notes.append(f"timed out after {self._timeout:g} s and was stopped")
        elif result.exit_code:
            notes.append(f"exit code {result.exit_code}")
        return "\n".join([*([result.output] if result.output else []), *(f"[{n}]" for n in notes)])
