"""vLLM's two ways to sample from token ids, as pure functions between its JSON and our types.

`/inference/v1/generate` is the better one: ids in and out, and the version of the weights per
token. Servers without it, or with it switched off, have `/v1/completions` with `return_token_ids`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from rollout_crds.trajectory import FinishReason, WeightVersionSpan
from rollout_stages.ports import Prompt

Json = Mapping[str, Any]


class UnusableAnswer(Exception):
    """The server's answer lacks what a record needs; says what."""


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


class Dialect(Protocol):
    """One way to ask."""

    @property
    def path(self) -> str:
        """Of the HTTP request."""
        ...

    def request(self, prompt: Prompt, model: str, request_id: str) -> dict[str, Any]:
        """The body to send."""
        ...

    def read(self, answer: Json) -> Sampled:
        """Read a 200 answer.

        Raises:
            UnusableAnswer: Something is missing in it.
            GenerationFailed: It tells of an error of the server.
        """
        ...


class Generate:
    """`/inference/v1/generate`."""

    path = "/inference/v1/generate"

    def request(self, prompt: Prompt, model: str, request_id: str) -> dict[str, Any]:
        """The body to send."""
        return {
            "model": model,
            "request_id": request_id,
            "token_ids": list(prompt.token_ids),
            "sampling_params": {**_sampling(prompt), "logprobs": 0},
            "return_token_ids": True,
            "stream": False,
        }

    def read(self, answer: Json) -> Sampled:
        """Read a 200 answer."""
        choice = _choice(answer)
        token_ids = _ids(choice.get("token_ids"), "token_ids")
        return Sampled(
            prompt_token_ids=_optional_ids(answer.get("prompt_token_ids")),
            token_ids=token_ids,
            logprobs=_paired_logprobs(choice, token_ids),
            finish_reason=_finish_reason(choice),
            weight_versions=tuple(
                WeightVersionSpan(version=str(s["version"]), start=s["start"], end=s["end"])
                for s in choice.get("weight_versions") or ()
            ),
            cached_prompt_tokens=_cached_tokens(answer),
        )


class Completions:
    """`/v1/completions` with `return_token_ids`."""

    path = "/v1/completions"

    def request(self, prompt: Prompt, model: str, request_id: str) -> dict[str, Any]:
        """The body to send."""
        return {
            "model": model,
            "request_id": request_id,
            "prompt": list(prompt.token_ids),
            **_sampling(prompt),
            "logprobs": 0,
            "return_token_ids": True,
            "stream": False,
        }

    def read(self, answer: Json) -> Sampled:
        """Read a 200 answer."""
        choice = _choice(answer)
        token_ids = _ids(choice.get("token_ids"), "token_ids (it needs `return_token_ids`)")
        logprobs = (choice.get("logprobs") or {}).get("token_logprobs") or []
        return Sampled(
            prompt_token_ids=_optional_ids(choice.get("prompt_token_ids")),
            token_ids=token_ids,
            logprobs=_as_many(token_ids, logprobs),
            finish_reason=_finish_reason(choice),
            cached_prompt_tokens=_cached_tokens(answer),
        )


def _sampling(prompt: Prompt) -> dict[str, Any]:
    sampling = prompt.sampling
    parameters: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop),
        "stop_token_ids": list(prompt.stop_token_ids),
    }
    if sampling.seed is not None:
        parameters["seed"] = sampling.seed
    if prompt.forced_text is not None:
        parameters["structured_outputs"] = {"choice": [prompt.forced_text]}
    return parameters


def _choice(answer: Json) -> Json:
    choices = answer.get("choices")
    if not isinstance(choices, list) or len(choices) != 1 or not isinstance(choices[0], Mapping):
        msg = "the answer does not have exactly one choice"
        raise UnusableAnswer(msg)
    return choices[0]


def _ids(value: object, name: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(i, int) for i in value):
        msg = f"the answer has no {name}"
        raise UnusableAnswer(msg)
    return tuple(value)


def _optional_ids(value: object) -> tuple[int, ...] | None:
    return None if value is None else _ids(value, "prompt_token_ids")


def _paired_logprobs(choice: Json, token_ids: tuple[int, ...]) -> tuple[float, ...]:
    content = (choice.get("logprobs") or {}).get("content") or []
    named = [entry.get("token_id") for entry in content]
    if any(i is not None for i in named) and named != list(token_ids):
        msg = "the log-probs belong to other tokens than those of the answer"
        raise UnusableAnswer(msg)
    return _as_many(token_ids, [entry.get("logprob") for entry in content])


def _as_many(token_ids: tuple[int, ...], logprobs: list[Any]) -> tuple[float, ...]:
    if len(logprobs) != len(token_ids) or any(value is None for value in logprobs):
        msg = f"the answer has {len(logprobs)} log-probs for {len(token_ids)} tokens"
        raise UnusableAnswer(msg)
    numbers = tuple(float(value) for value in logprobs)
    if not all(map(math.isfinite, numbers)):
        msg = "the answer has a log-prob that is not finite"
        raise UnusableAnswer(msg)
    return numbers


_FINISH_REASONS: dict[object, Literal["stop", "length", "abort"]] = {
    "stop": "stop",
    "length": "length",
    "abort": "abort",
}


def _finish_reason(choice: Json) -> FinishReason:
    reason = choice.get("finish_reason")
    if reason not in _FINISH_REASONS:
        msg = f"generation ended with finish_reason {reason!r}"
        raise GenerationFailed(msg)
    return _FINISH_REASONS[reason]


def _cached_tokens(answer: Json) -> int | None:
    details = (answer.get("usage") or {}).get("prompt_tokens_details") or {}
    cached = details.get("cached_tokens")
    return cached if isinstance(cached, int) else None
