"""Tool calls in the text of a model, in the form that Hermes and Qwen models are trained on.

    <tool_call>
    {"name": "bash", "arguments": {"command": "ls"}}
    </tool_call>

Nothing that a model writes is an error here: what cannot be read is explained to the model.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from rollout_crds.trajectory import ToolCall

OPEN_TAG = "<tool_call>"
CLOSE_TAG = "</tool_call>"
_CALL = re.compile(re.escape(OPEN_TAG) + r"(.*?)(?:" + re.escape(CLOSE_TAG) + r"|\Z)", re.DOTALL)
_REASONING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


@dataclass(frozen=True)
class MalformedCall:
    """A tool call that cannot be read, and what to tell the model."""

    id: str
    problem: str


ParsedCall = ToolCall | MalformedCall


def parse(text: str, turn: int) -> list[ParsedCall]:
    """The tool calls of an assistant's turn, in order; reasoning is not searched.

    Args:
        text: The turn.
        turn: Its number, which makes the ids of the calls unique.
    """
    bodies = _CALL.findall(_REASONING.sub("", text))
    return [_parse_one(body, f"call-{turn}-{index}") for index, body in enumerate(bodies)]


def _parse_one(body: str, call_id: str) -> ParsedCall:
    try:
        call = _read_json(body)
    except ValueError as error:
        return MalformedCall(call_id, f"the tool call is not valid JSON: {error}")
    name = call.get("name") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(name, str):
        return MalformedCall(call_id, 'the tool call must be an object with a string "name"')
    arguments = _arguments(call.get("arguments", {}))
    if arguments is None:
        return MalformedCall(call_id, '"arguments" of the tool call must be an object')
    return ToolCall(id=call_id, name=name, arguments=arguments)


def _read_json(text: str) -> Any:
    """Read JSON that can be written again: no NaN, no half characters, no endless nesting.

    Raises:
        ValueError: It is not such JSON.
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        msg = "it is nested too deeply"
        raise ValueError(msg) from None
    return value


def _arguments(value: object) -> dict[str, JsonValue] | None:
    if isinstance(value, str):
        try:
            value = _read_json(value)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def describe_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """Instructions for models whose chat template does not know tools."""
    listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    example = '{"name": <function-name>, "arguments": <args-json-object>}'
    return (
        "You may call these functions, given as JSON schemas:\n"
        f"<tools>\n{listed}\n</tools>\n"
        f"To call one, answer with:\n{OPEN_TAG}\n{example}\n{CLOSE_TAG}\n"
        "The result comes back in <tool_response> tags. Answer without a call when you are done."
    )
