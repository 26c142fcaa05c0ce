"""Turns of a model, and the record of its calls."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from rollout_crds.rolloutjob import Sampling
from rollout_crds.trajectory import segments
from rollout_stages.errors import StageError
from rollout_stages.model import ModelSettings, RecordedModel
from rollout_stages.ports import Generation, Prompt
from rollout_stages.seeds import call_seed
from rollout_stages.work import Progress

END = 99


def generation(ids: Sequence[int], finish: str = "stop") -> Generation:
    return Generation(
        request_id="r",
        token_ids=tuple(ids),
        logprobs=tuple(-0.5 for _ in ids),
        finish_reason=finish,  # type: ignore[arg-type]
        started_at=1.0,
        duration_seconds=0.1,
    )


class ScriptedEngine:
    """Returns its generations one after the other."""

    def __init__(self, *generations: Generation) -> None:
        self.generations = list(generations)
        self.prompts: list[Prompt] = []

    async def generate(self, prompt: Prompt, deadline: float) -> Generation:
        del deadline
        self.prompts.append(prompt)
        return self.generations.pop(0)


def recorded(engine: ScriptedEngine, context_tokens: int = 100, **sampling: Any) -> RecordedModel:
    settings = ModelSettings(
        sampling=Sampling.model_validate({"maxTokens": 8, **sampling}),
        context_tokens=context_tokens,
        sample_index=2,
        backend="b",
        logprobs_mode="processed_logprobs",
        turn_end_id=END,
        vocabulary_size=END + 1,
        deadline=asyncio.get_running_loop().time() + 60,
    )
    return RecordedModel(engine, settings, Progress(), lambda ids: "".join(map(chr, ids)))


async def test_aborted_turn_goes_on_behind_the_tokens_it_has() -> None:
    engine = ScriptedEngine(generation([], "abort"), generation([5, 6], "abort"), generation([7]))
    model = recorded(engine)
    turn = await model.turn((1, 2))
    assert turn.output_token_ids == (5, 6, 7)
    assert [p.token_ids for p in engine.prompts] == [(1, 2), (1, 2), (1, 2, 5, 6)]
    assert [p.sampling.max_tokens for p in engine.prompts] == [8, 8, 6]
    assert [c.finish_reason for c in model.calls] == ["abort", "stop"]
    (segment,) = segments(model.calls)
    assert segment.token_ids == (1, 2, 5, 6, 7)
    assert segment.loss_mask == (0, 0, 1, 1, 1)


async def test_forced_text_goes_on_where_it_was_aborted() -> None:
    engine = ScriptedEngine(generation([ord("a")], "abort"), generation([ord("b")]))
    await recorded(engine).turn((1,), forced_text="ab")
    assert [p.forced_text for p in engine.prompts] == ["ab", "b"]
    assert all(p.sampling.forced for p in engine.prompts)


async def test_output_is_clamped_to_the_context() -> None:
    engine = ScriptedEngine(generation([5, 6, 7], "length"))
    turn = await recorded(engine, context_tokens=5).turn((1, 2))
    assert engine.prompts[0].sampling.max_tokens == 3
    assert turn.ended_by == "context_limit"


async def test_output_limit_is_told_from_the_context_limit() -> None:
    engine = ScriptedEngine(generation([5] * 8, "length"))
    assert (await recorded(engine).turn((1, 2))).ended_by == "output_limit"


async def test_each_call_has_a_seed_of_its_own() -> None:
    engine = ScriptedEngine(generation([5]), generation([6]))
    model = recorded(engine, seed=7)
    await model.turn((1,))
    await model.turn((1, 5))
    assert [p.sampling.seed for p in engine.prompts] == [call_seed(7, 2, 0), call_seed(7, 2, 1)]
    assert [c.sampling.seed for c in model.calls] == [p.sampling.seed for p in engine.prompts]


async def test_without_a_seed_the_engine_draws() -> None:
    engine = ScriptedEngine(generation([5]))
    await recorded(engine).turn((1,))
    assert engine.prompts[0].sampling.seed is None


@pytest.mark.parametrize(("base", "sample", "call"), [(7, 2, 1), (7, 1, 0), (8, 2, 0)])
def test_seeds_differ_by_base_sample_and_call(base: int, sample: int, call: int) -> None:
    assert call_seed(base, sample, call) != call_seed(7, 2, 0)
    assert 0 <= call_seed(base, sample, call) < 2**31


async def test_token_that_the_tokenizer_does_not_have_is_refused() -> None:
    model = recorded(ScriptedEngine(generation([5, END + 1])))
    with pytest.raises(
        StageError, match=r"token 100.*100 tokens.*LLMPool\.spec\.tokenizer"
    ) as caught:
        await model.turn((1, 2))
    assert (caught.value.reason, caught.value.retryable) == ("TokenizerUnusable", False)
    assert model.calls == ()
