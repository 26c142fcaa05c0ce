"""Reads vLLM's answers strictly: what cannot be an exact record of a sampling is refused.

A number that is no log-prob, an id that is no token, a log-prob of another token: each would pass
through to training unseen, so the first one found is named and nothing is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rollout_crds.trajectory import FinishReason, WeightVersionSpan
from rollout_crds.validation import field_errors

M = TypeVar("M", bound=BaseModel)
TokenId = Annotated[int, Field(ge=0, lt=2**31)]
# The logarithm of a probability, with room for rounding in half precision.
LogProb = Annotated[float, Field(le=0.01, allow_inf_nan=False)]


class UnusableAnswer(Exception):
    """The server's answer is no exact record; says what is wrong."""


class GenerationFailed(Exception):
    """The server gave up on the request; it may work the next time."""


@dataclass(frozen=True)
class Sampled:
    """The part of an answer that a record needs."""

    prompt_token_ids: tuple[int, ...] | None
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    weight_versions: tuple[WeightVersionSpan, ...] = ()
    cached_prompt_tokens: int | None = None


class _Part(BaseModel):
    """Fields that we do not read may come and go with the server's version."""

    model_config = ConfigDict(strict=True, extra="ignore")


class _PromptDetails(_Part):
    cached_tokens: int | None = None


class _Usage(_Part):
    prompt_tokens_details: _PromptDetails | None = None


class _Span(_Part):
    version: str | int
    start: Annotated[int, Field(ge=0)]
    end: int


class _Entry(_Part):
    token_id: TokenId | None = None
    logprob: LogProb


class _Entries(_Part):
    content: list[_Entry]


class _GenerateChoice(_Part):
    token_ids: list[TokenId]
    logprobs: _Entries
    finish_reason: str | None
    weight_versions: list[_Span] | None = None


class _Generation(_Part):
    prompt_token_ids: list[TokenId] | None = None
    usage: _Usage | None = None
    choices: Annotated[list[_GenerateChoice], Field(min_length=1, max_length=1)]


class _Numbers(_Part):
    token_logprobs: list[LogProb]


class _CompletionChoice(_Part):
    prompt_token_ids: list[TokenId] | None = None
    token_ids: list[TokenId]
    logprobs: _Numbers
    finish_reason: str | None


class _Completion(_Part):
    usage: _Usage | None = None
    choices: Annotated[list[_CompletionChoice], Field(min_length=1, max_length=1)]


def read_generation(answer: object) -> Sampled:
    """Read the JSON of `/inference/v1/generate`.

    Raises:
        UnusableAnswer: Something in it is missing or wrong.
        GenerationFailed: It tells of an error of the server.
    """
    read = _read(_Generation, answer)
    (choice,) = read.choices
    named = [entry.token_id for entry in choice.logprobs.content]
    if any(i is not None for i in named) and named != choice.token_ids:
        msg = "the log-probs belong to other tokens than those of the answer"
        raise UnusableAnswer(msg)
    return _sampled(
        prompt_ids=read.prompt_token_ids,
        ids=choice.token_ids,
        logprobs=[entry.logprob for entry in choice.logprobs.content],
        finish=_finish_reason(choice.finish_reason),
        usage=read.usage,
        spans=choice.weight_versions or (),
    )


def read_completion(answer: object) -> Sampled:
    """Read the JSON of `/v1/completions`; raises as `read_generation` does."""
    read = _read(_Completion, answer)
    (choice,) = read.choices
    return _sampled(
        prompt_ids=choice.prompt_token_ids,
        ids=choice.token_ids,
        logprobs=choice.logprobs.token_logprobs,
        finish=_finish_reason(choice.finish_reason),
        usage=read.usage,
    )


def _read(kind: type[M], answer: object) -> M:
    try:
        return kind.model_validate(answer)
    except ValidationError as error:
        first = field_errors(error)[0]
        msg = f"its answer is unusable: {first.field or 'the body'}: {first.message}"
        raise UnusableAnswer(msg) from error


def _sampled(
    *,
    prompt_ids: Sequence[int] | None,
    ids: Sequence[int],
    logprobs: Sequence[float],
    finish: FinishReason,
    usage: _Usage | None,
    spans: Sequence[_Span] = (),
) -> Sampled:
    if len(logprobs) != len(ids):
        msg = f"the answer has {len(logprobs)} log-probs for {len(ids)} tokens"
        raise UnusableAnswer(msg)
    if not ids and finish != "abort":
        msg = "the answer has no token, not even one that ends the turn"
        raise UnusableAnswer(msg)
    if any(not span.start <= span.end <= len(ids) for span in spans):
        msg = f"`weight_versions` has a span that is none of {len(ids)} tokens"
        raise UnusableAnswer(msg)
    details = usage.prompt_tokens_details if usage else None
    return Sampled(
        prompt_token_ids=None if prompt_ids is None else tuple(prompt_ids),
        token_ids=tuple(ids),
        logprobs=tuple(map(float, logprobs)),
        finish_reason=finish,
        weight_versions=tuple(
            WeightVersionSpan(version=str(s.version), start=s.start, end=s.end) for s in spans
        ),
        cached_prompt_tokens=details.cached_tokens if details else None,
    )


_FINISH_REASONS: dict[str | None, Literal["stop", "length", "abort"]] = {
    "stop": "stop",
    "length": "length",
    "abort": "abort",
}


def _finish_reason(reason: str | None) -> FinishReason:
    if reason not in _FINISH_REASONS:
        msg = f"generation ended with finish_reason {reason!r}"
        raise GenerationFailed(msg)
    return _FINISH_REASONS[reason]
