"""Assistant turns from an engine, each model call recorded as it was made.

A turn is one call, unless the engine aborts it half-way (as it does for a weight update). Then the
tokens so far are kept as a call of their own and the next call goes on behind them.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rollout_client.backoff import backoff
from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.rolloutjob import Sampling
from rollout_crds.trajectory import LogprobsMode, ModelCall, SamplingParams
from rollout_stages.errors import StageError
from rollout_stages.ports import Engine, Generation, Prompt
from rollout_stages.seeds import call_seed
from rollout_stages.work import Progress

TurnEnd = Literal["stop", "output_limit", "context_limit"]


@dataclass(frozen=True)
class Turn:
    """An assistant's turn in tokens."""

    prompt_token_ids: tuple[int, ...]
    output_token_ids: tuple[int, ...]
    ended_by: TurnEnd
    call_index: int
    """Of its last call."""


@dataclass(frozen=True)
class ModelSettings:
    """How one rollout calls its model."""

    sampling: Sampling
    context_tokens: int
    """Prompt and output together stay within this."""
    sample_index: int
    backend: str
    logprobs_mode: LogprobsMode
    turn_end_id: int
    vocabulary_size: int
    """Of the tokenizer and the model it belongs to: token ids are below this."""
    deadline: float
    """By the event loop's clock, in seconds."""


class RecordedModel:
    """The model of one rollout, and the record of all its calls.

    Args:
        engine: Where the tokens come from.
        settings: How it is called.
        progress: Told of each call.
        text: Turns tokens into text, to go on with a forced text that was cut off.
    """

    def __init__(
        self,
        engine: Engine,
        settings: ModelSettings,
        progress: Progress,
        text: Callable[[Sequence[int]], str],
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._progress = progress
        self._text = text
        self._calls: list[ModelCall] = []

    @property
    def calls(self) -> tuple[ModelCall, ...]:
        """The calls so far."""
        return tuple(self._calls)

    def room(self, prompt: Sequence[int]) -> int:
        """Tokens that the context has left behind `prompt`; 0 or less: none."""
        return self._settings.context_tokens - len(prompt)

    async def turn(self, prompt: tuple[int, ...], forced_text: str | None = None) -> Turn:
        """Sample one assistant turn.

        Args:
            prompt: Ids up to where the turn begins; `room(prompt)` must be positive.
            forced_text: Constrain the turn to this text.

        Raises:
            StageError: The engine cannot be used.
        """
        output: tuple[int, ...] = ()
        wanted = self.room(prompt)
        if forced_text is None:
            wanted = min(wanted, self._settings.sampling.max_tokens)
        waits = backoff(0.1, 5.0)
        while True:
            request = self._request(prompt + output, wanted - len(output), forced_text, output)
            generation = await self._engine.generate(request, self._settings.deadline)
            self._check_vocabulary(generation)
            self._record(request, generation)
            output += generation.token_ids
            if generation.finish_reason != "abort":
                return self._turn(prompt, output, generation)
            if len(output) >= wanted:
                return self._turn(prompt, output, replace(generation, finish_reason="length"))
            await asyncio.sleep(next(waits))

    def _request(
        self, prompt: tuple[int, ...], max_tokens: int, forced: str | None, output: Sequence[int]
    ) -> Prompt:
        sampling = self._settings.sampling
        seed = None
        if sampling.seed is not None:
            seed = call_seed(sampling.seed, self._settings.sample_index, len(self._calls))
        return Prompt(
            token_ids=prompt,
            sampling=SamplingParams(
                temperature=float(sampling.temperature),
                top_p=float(sampling.top_p),
                top_k=sampling.top_k,
                max_tokens=max_tokens,
                seed=seed,
                stop=tuple(sampling.stop),
                forced=forced is not None,
            ),
            forced_text=None if forced is None else forced.removeprefix(self._text(output)),
            stop_token_ids=(self._settings.turn_end_id,),
        )

    def _check_vocabulary(self, generation: Generation) -> None:
        largest, size = max(generation.token_ids, default=0), self._settings.vocabulary_size
        if largest >= size:
            raise StageError(
                Boundary.MODEL,
                FailureReason.TOKENIZER_UNUSABLE,
                f"backend {self._settings.backend} sampled token {largest}, but the tokenizer has "
                f"{size} tokens: point `LLMPool.spec.tokenizer` to that of the served model",
                retryable=False,
            )

    def _record(self, request: Prompt, generation: Generation) -> None:
        if generation.finish_reason == "abort" and not generation.token_ids:
            return
        call = ModelCall(
            index=len(self._calls),
            request_id=generation.request_id,
            backend=self._settings.backend,
            prompt_token_ids=request.token_ids,
            output_token_ids=generation.token_ids,
            output_logprobs=generation.logprobs,
            logprobs_mode=self._settings.logprobs_mode,
            finish_reason=generation.finish_reason,
            sampling=request.sampling,
            weight_versions=generation.weight_versions,
            cached_prompt_tokens=generation.cached_prompt_tokens,
            started_at=generation.started_at,
            duration_seconds=generation.duration_seconds,
        )
        self._calls.append(call)
        self._progress.prompt_tokens += len(call.prompt_token_ids)
        self._progress.output_tokens += len(call.output_token_ids)

    def _turn(self, prompt: tuple[int, ...], output: tuple[int, ...], last: Generation) -> Turn:
        ended_by: TurnEnd = "stop"
        if last.finish_reason == "length":
            ended_by = "context_limit" if self.room(prompt + output) <= 0 else "output_limit"
        return Turn(prompt, output, ended_by, call_index=len(self._calls) - 1)
