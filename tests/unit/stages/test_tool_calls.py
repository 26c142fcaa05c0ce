"""Tool calls are read from text; what cannot be read is explained."""

import pytest

from rollout_crds.trajectory import ToolCall
from rollout_stages.tool_calls import MalformedCall, parse


def call(body: str) -> str:
    return f"<tool_call>\n{body}\n</tool_call>"


def test_several_calls_in_one_turn_keep_their_order() -> None:
    text = "Let me look." + call('{"name": "bash", "arguments": {"command": "ls"}}') * 2
    calls = parse(text, 4)
    assert [c.id for c in calls] == ["call-4-0", "call-4-1"]
    assert calls[0] == ToolCall(id="call-4-0", name="bash", arguments={"command": "ls"})


def test_text_without_calls_has_none() -> None:
    assert parse("The answer is 4.", 0) == []


def test_arguments_may_be_a_json_string() -> None:
    (found,) = parse(call('{"name": "bash", "arguments": "{\\"command\\": \\"ls\\"}"}'), 0)
    assert isinstance(found, ToolCall)
    assert found.arguments == {"command": "ls"}


def test_calls_in_reasoning_are_not_made() -> None:
    thought = "<think>maybe " + call('{"name": "bash", "arguments": {}}') + "</think>no"
    assert parse(thought, 0) == []


def test_call_without_closing_tag_is_read() -> None:
    (found,) = parse('<tool_call>{"name": "bash", "arguments": {"command": "ls"}}', 0)
    assert isinstance(found, ToolCall)


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('{"name": "bash", "arguments": {', "not valid JSON"),
        ("[1]", "must be an object"),
        ('{"arguments": {}}', "must be an object"),
        ('{"name": "bash", "arguments": [1]}', "must be an object"),
        ('{"name": "bash", "arguments": "no json"}', "must be an object"),
        ('{"name": "bash", "arguments": {"command": "\\ud800"}}', "not valid JSON"),
        ('{"name": "bash", "arguments": {"x": NaN}}', "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("", "not valid JSON"),
    ],
)
def test_malformed_call_is_explained(body: str, problem: str) -> None:
    (found,) = parse(call(body), 0)
    assert isinstance(found, MalformedCall)
    assert problem in found.problem
