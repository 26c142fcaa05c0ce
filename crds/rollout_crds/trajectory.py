"""The trajectory: one record per model call with the token ids and log-probs the engine returned.

Token ids are the truth. Text is kept beside them for people, and is never turned back into ids.
"""

from collections.abc import Callable
from typing import Literal

from pydantic import JsonValue, model_validator

from rollout_crds.base import DataModel

LogprobsMode = Literal["processed_logprobs", "raw_logprobs"]
FinishReason = Literal["stop", "length", "abort"]


class SamplingParams(DataModel):
    """The sampling parameters that a model call was made with."""

    temperature: float
    top_p: float
    top_k: int
    max_tokens: int
    seed: int | None = None
    stop: tuple[str, ...] = ()
    forced: bool = False
    """The output was constrained to a given text, so its log-probs are not the policy's."""


class WeightVersionSpan(DataModel):
    """Output tokens `[start, end)` of a call that one version of the weights sampled."""

    version: str
    start: int
    end: int


class ModelCall(DataModel):
    """One call to the engine.

    `output_logprobs[i]` is the log-probability (natural logarithm) of `output_token_ids[i]`.
    """

    index: int
    """0-based position among the rollout's calls."""
    request_id: str
    backend: str
    """Name of the backend that answered."""
    prompt_token_ids: tuple[int, ...]
    output_token_ids: tuple[int, ...]
    output_logprobs: tuple[float, ...]
    logprobs_mode: LogprobsMode
    finish_reason: FinishReason
    sampling: SamplingParams
    weight_versions: tuple[WeightVersionSpan, ...] = ()
    cached_prompt_tokens: int | None = None
    """Prompt tokens served from the prefix cache, where the engine tells."""
    started_at: float
    """Unix time in seconds, by the worker's clock."""
    duration_seconds: float

    @model_validator(mode="after")
    def _logprob_for_each_token(self) -> "ModelCall":
        if len(self.output_logprobs) != len(self.output_token_ids):
            msg = (
                f"must have one log-prob per output token: {len(self.output_logprobs)} log-probs "
                f"for {len(self.output_token_ids)} tokens in call {self.index}"
            )
            raise ValueError(msg)
        return self


class ToolCall(DataModel):
    """A tool call that the model asked for."""

    id: str
    name: str
    arguments: dict[str, JsonValue]


class Message(DataModel):
    """One message of the transcript, for people."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    call_index: int | None = None
    """Of an assistant message: the model call that produced it."""
    duration_seconds: float | None = None
    """Of a tool message: wall time of the tool call."""


StopReason = Literal["finished", "max_turns", "context_limit", "output_limit", "deadline", "failed"]


class Trajectory(DataModel):
    """What one rollout did."""

    model: str
    calls: tuple[ModelCall, ...]
    messages: tuple[Message, ...]
    stop_reason: StopReason
    """`finished`: the model answered without a tool call; `failed`: the stage failed before the
    agent was done; the others are limits it ran into."""

    @property
    def prompt_tokens(self) -> int:
        """Prompt tokens summed over the calls."""
        return sum(len(call.prompt_token_ids) for call in self.calls)

    @property
    def output_tokens(self) -> int:
        """Output tokens summed over the calls."""
        return sum(len(call.output_token_ids) for call in self.calls)


class Segment(DataModel):
    """A training sequence: calls whose prompts extend one another token by token.

    The three sequences have the same length. `loss_mask[i]` is 1 where the policy sampled
    `token_ids[i]`; `logprobs[i]` is 0.0 where it did not.
    """

    calls: tuple[int, ...]
    """Indices of the model calls in it."""
    token_ids: tuple[int, ...]
    loss_mask: tuple[int, ...]
    logprobs: tuple[float, ...]


def segments(calls: tuple[ModelCall, ...]) -> tuple[Segment, ...]:
    """Derive the training sequences by exact prefix; no call is dropped.

    A call joins the open segment when its prompt starts with all tokens of that segment;
    otherwise it opens a new one.
    """
    builders: list[_SegmentBuilder] = []
    for call in calls:
        if not builders or not builders[-1].accepts(call):
            builders.append(_SegmentBuilder())
        builders[-1].add(call)
    return tuple(builder.build() for builder in builders)


class _SegmentBuilder:
    def __init__(self) -> None:
        self.calls: list[int] = []
        self.token_ids: list[int] = []
        self.loss_mask: list[int] = []
        self.logprobs: list[float] = []

    def accepts(self, call: ModelCall) -> bool:
        return call.prompt_token_ids[: len(self.token_ids)] == tuple(self.token_ids)

    def add(self, call: ModelCall) -> None:
        observed = call.prompt_token_ids[len(self.token_ids) :]
        self.calls.append(call.index)
        self.token_ids += [*observed, *call.output_token_ids]
        self.loss_mask += [0] * len(observed) + [1] * len(call.output_token_ids)
        self.logprobs += [0.0] * len(observed) + list(call.output_logprobs)

    def build(self) -> Segment:
        return Segment(
            calls=tuple(self.calls),
            token_ids=tuple(self.token_ids),
            loss_mask=tuple(self.loss_mask),
            logprobs=tuple(self.logprobs),
        )


def provenance_issues(trajectory: Trajectory) -> tuple[str, ...]:
    """Why the log-probs are not those of the policy's full distribution; empty when they are.

    An importance ratio needs log-probs after temperature scaling of an untruncated distribution.
    """
    checks: dict[str, Callable[[], bool]] = {
        "no_model_call": lambda: not trajectory.calls,
        "no_output_token": lambda: bool(trajectory.calls) and trajectory.output_tokens == 0,
        "logprobs_before_temperature": lambda: any(
            c.logprobs_mode == "raw_logprobs" and c.sampling.temperature != 1.0
            for c in trajectory.calls
        ),
        "greedy_decoding": lambda: any(c.sampling.temperature == 0.0 for c in trajectory.calls),
        "truncated_distribution": lambda: any(
            c.sampling.top_p != 1.0 or c.sampling.top_k not in {-1, 0} for c in trajectory.calls
        ),
        "forced_decoding": lambda: any(c.sampling.forced for c in trajectory.calls),
    }
    return tuple(name for name, found in checks.items() if found())
