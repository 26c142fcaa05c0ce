"""The built-in agent over a scripted engine and a sandbox in memory."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from rollout_crds.rolloutjob import Sampling
from rollout_crds.trajectory import Message, StopReason, Trajectory
from rollout_crds.wire import BlobRef
from rollout_stages.agent import Agent, Script
from rollout_stages.model import ModelSettings, RecordedModel
from rollout_stages.ports import CommandResult
from rollout_stages.tools import ToolBox
from rollout_stages.work import Progress
from tests.unit.stages.test_conversation_tokens import CHATML_WITH_TOOLS, chat, ids_of
from tests.unit.stages.test_model_calls import ScriptedEngine, generation


def call(name: str, **arguments: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


LS = call("bash", command="ls")


class MemorySandbox:
    """Answers every command with one result."""

    def __init__(self, result: CommandResult | None = None) -> None:
        self.result = result or CommandResult("out", 0)
        self.ran: list[str] = []

    async def bash(self, command: str, timeout_seconds: float) -> CommandResult:
        del timeout_seconds
        self.ran.append(command)
        return self.result

    ipython = bash
    command = bash

    async def write(self, path: str, content: bytes, mode: int) -> None:
        raise NotImplementedError

    async def export(self, paths: Sequence[str]) -> bytes:
        raise NotImplementedError

    async def restore(self, archive: bytes, paths: Sequence[str]) -> None:
        raise NotImplementedError

    async def commit(self) -> BlobRef:
        raise NotImplementedError


async def run(
    *turns: str,
    sandbox: MemorySandbox | None = None,
    max_turns: int = 5,
    context_tokens: int = 5000,
    demonstration: tuple[str, ...] | None = None,
) -> tuple[StopReason, Trajectory, ScriptedEngine]:
    tokenizer = chat(CHATML_WITH_TOOLS)
    engine = ScriptedEngine(*(generation([*ids_of(text), tokenizer.turn_end_id]) for text in turns))
    settings = ModelSettings(
        sampling=Sampling(),
        context_tokens=context_tokens,
        sample_index=0,
        backend="b",
        logprobs_mode="processed_logprobs",
        turn_end_id=tokenizer.turn_end_id,
        vocabulary_size=10_000,
        deadline=asyncio.get_running_loop().time() + 60,
    )
    progress = Progress()
    agent = Agent(
        "m",
        RecordedModel(engine, settings, progress, tokenizer.text),
        tokenizer,
        ToolBox(["bash", "ipython"], sandbox or MemorySandbox(), 9.0),
        Script(max_turns, demonstration),
        progress,
    )
    opening = [Message(role="user", content="go")]
    prompt = tokenizer.first_prompt([{"role": "user", "content": "go"}])
    reason = await agent.run(opening, prompt)
    trajectory = agent.trajectory(reason)
    assert progress.turns == sum(m.role == "assistant" for m in trajectory.messages)
    assert progress.output_tokens == trajectory.output_tokens
    return reason, trajectory, engine


def tool_results(trajectory: Trajectory) -> list[str]:
    return [m.content for m in trajectory.messages if m.role == "tool"]


async def test_a_turn_without_a_tool_call_finishes() -> None:
    reason, trajectory, _ = await run(LS, "done")
    assert reason == "finished"
    assert [m.role for m in trajectory.messages] == ["user", "assistant", "tool", "assistant"]
    assert trajectory.messages[1].tool_calls[0].arguments == {"command": "ls"}
    assert trajectory.messages[2].tool_call_id == trajectory.messages[1].tool_calls[0].id
    assert [m.call_index for m in trajectory.messages] == [None, 0, None, 1]


async def test_turns_are_limited() -> None:
    reason, trajectory, _ = await run(LS, LS, LS, max_turns=2)
    assert reason == "max_turns"
    assert len(trajectory.calls) == 2


async def test_context_is_limited() -> None:
    big = MemorySandbox(CommandResult("x" * 400, 0))
    reason, trajectory, _ = await run(LS, LS, sandbox=big, context_tokens=300)
    assert reason == "context_limit"
    assert len(trajectory.calls) == 1


async def test_several_calls_of_a_turn_are_answered_in_order() -> None:
    sandbox = MemorySandbox()
    await run(call("bash", command="one") + call("ipython", code="two"), "done", sandbox=sandbox)
    assert sandbox.ran == ["one", "two"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ("<tool_call>{</tool_call>", "not valid JSON"),
        (call("rm", path="/"), "there is no tool 'rm'; there are: bash, ipython"),
        (call("bash", code="ls"), 'exactly one argument, the string "command"'),
        (call("bash", command="a\0b"), "NUL"),
    ],
)
async def test_wrong_calls_are_told_to_the_model(asked: str, told: str) -> None:
    sandbox = MemorySandbox()
    reason, trajectory, _ = await run(asked, "sorry", sandbox=sandbox)
    assert reason == "finished"
    (result,) = tool_results(trajectory)
    assert told in result
    assert sandbox.ran == []


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (CommandResult("boom", 3), "boom\n[exit code 3]"),
        (CommandResult("", 0), ""),
        (
            CommandResult("slow", None, timed_out=True),
            "slow\n[timed out after 9 s and was stopped]",
        ),
        (CommandResult("", 0, notice="the shell was restarted"), "[the shell was restarted]"),
    ],
)
async def test_how_a_command_ended_is_told_to_the_model(result: CommandResult, told: str) -> None:
    _, trajectory, _ = await run(LS, "done", sandbox=MemorySandbox(result))
    assert tool_results(trajectory) == [told]


async def test_demonstration_forces_each_turn_and_stops_behind_the_last() -> None:
    script = (LS, call("bash", command="pwd"))
    sandbox = MemorySandbox()
    reason, trajectory, engine = await run(*script, sandbox=sandbox, demonstration=script)
    assert reason == "finished"
    assert [p.forced_text for p in engine.prompts] == list(script)
    assert all(c.sampling.forced for c in trajectory.calls)
    assert sandbox.ran == ["ls", "pwd"]
