"""The built-in agent: the model speaks, its tool calls are answered, until it calls no tool."""

import time
from collections.abc import Sequence
from dataclasses import dataclass

from rollout_crds.trajectory import Message, StopReason, ToolCall, Trajectory
from rollout_stages.model import RecordedModel, Turn
from rollout_stages.tokens.conversation import ChatTokenizer
from rollout_stages.tool_calls import MalformedCall, ParsedCall, parse
from rollout_stages.tools import ToolBox
from rollout_stages.work import Progress


@dataclass(frozen=True)
class Script:
    """What limits or leads the agent."""

    max_turns: int
    demonstration: tuple[str, ...] | None = None
    """Force each turn to its text, and stop behind the last."""


class Agent:
    """One rollout of the built-in agent.

    Args:
        name: The model's name, for the trajectory.
        model: Samples the turns.
        tokenizer: Makes the prompts.
        tools: Answers the calls.
        script: Its limits.
        progress: Told of each turn.
    """

    def __init__(
        self,
        name: str,
        model: RecordedModel,
        tokenizer: ChatTokenizer,
        tools: ToolBox,
        script: Script,
        progress: Progress,
    ) -> None:
        self._name = name
        self._model = model
        self._tokenizer = tokenizer
        self._tools = tools
        self._script = script
        self._progress = progress
        self._messages: list[Message] = []

    @property
    def last_answer(self) -> str | None:
        """The last assistant message."""
        turns = (m.content for m in reversed(self._messages) if m.role == "assistant")
        return next(turns, None)

    def trajectory(self, stop_reason: StopReason) -> Trajectory:
        """What it did so far."""
        return Trajectory(
            model=self._name,
            calls=self._model.calls,
            messages=tuple(self._messages),
            stop_reason=stop_reason,
        )

    async def run(self, opening: Sequence[Message], prompt: tuple[int, ...]) -> StopReason:
        """Go on until the agent is done or at a limit.

        Args:
            opening: System and user message.
            prompt: The same in token ids, up to where the assistant begins.

        Raises:
            StageError: Model or sandbox cannot be used.
        """
        self._messages += opening
        for number in range(self._script.max_turns):
            if self._model.room(prompt) <= 0:
                return "context_limit"
            turn = await self._model.turn(prompt, self._forced_text(number))
            calls = self._note(turn, number)
            if turn.ended_by != "stop":
                return turn.ended_by
            if not calls:
                return "finished"
            results = [await self._answer(call) for call in calls]
            if self._is_last(number):
                return "finished"
            prompt = self._tokenizer.extend(turn.prompt_token_ids, turn.output_token_ids, results)
        return "max_turns"

    def _forced_text(self, number: int) -> str | None:
        demonstration = self._script.demonstration
        return None if demonstration is None else demonstration[number]

    def _is_last(self, number: int) -> bool:
        demonstration = self._script.demonstration
        return demonstration is not None and number + 1 == len(demonstration)

    def _note(self, turn: Turn, number: int) -> list[ParsedCall]:
        text = self._tokenizer.text(turn.output_token_ids)
        calls = parse(text, number)
        self._messages.append(
            Message(
                role="assistant",
                content=text,
                tool_calls=tuple(call for call in calls if isinstance(call, ToolCall)),
                call_index=turn.call_index,
            )
        )
        self._progress.turns += 1
        return calls

    async def _answer(self, call: ParsedCall) -> str:
        started = time.perf_counter()
        if isinstance(call, MalformedCall):
            result = f"error: {call.problem}"
        else:
            result = await self._tools.call(call)
        self._messages.append(
            Message(
                role="tool",
                content=result,
                tool_call_id=call.id,
                duration_seconds=time.perf_counter() - started,
            )
        )
        return result
