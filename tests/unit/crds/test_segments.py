"""Training segments follow the exact prefix of the calls, and lose neither a call nor a token."""

from hypothesis import given
from hypothesis import strategies as st

from rollout_crds.trajectory import ModelCall, SamplingParams, Segment, segments

SAMPLING = SamplingParams(temperature=1.0, top_p=1.0, top_k=-1, max_tokens=8)
TOKENS = st.lists(st.integers(0, 3), max_size=5).map(tuple)


def call(index: int, prompt: tuple[int, ...], output: tuple[int, ...]) -> ModelCall:
    return ModelCall(
        index=index,
        request_id=f"r{index}",
        backend="b",
        prompt_token_ids=prompt,
        output_token_ids=output,
        output_logprobs=tuple(-0.1 * (index + 1) - i for i in range(len(output))),
        logprobs_mode="processed_logprobs",
        finish_reason="stop",
        sampling=SAMPLING,
        started_at=0.0,
        duration_seconds=0.0,
    )


@st.composite
def calls(draw: st.DrawFn) -> tuple[ModelCall, ...]:
    """Calls that mostly extend one another, as turns do, and now and then do not."""
    made: list[ModelCall] = []
    for index in range(draw(st.integers(0, 6))):
        context = made[-1].prompt_token_ids + made[-1].output_token_ids if made else ()
        if draw(st.booleans()):
            context = draw(TOKENS)
        made.append(call(index, context + draw(TOKENS), draw(TOKENS)))
    return tuple(made)


def covered(segment: Segment, made: tuple[ModelCall, ...]) -> bool:
    """Every call's prompt and output lie in the segment, the output under the mask."""
    end = 0
    for model_call in (made[index] for index in segment.calls):
        start, end = (
            len(model_call.prompt_token_ids),
            len(model_call.prompt_token_ids) + len(model_call.output_token_ids),
        )
        if segment.token_ids[:start] != model_call.prompt_token_ids:
            return False
        if segment.token_ids[start:end] != model_call.output_token_ids:
            return False
        if segment.loss_mask[start:end] != (1,) * (end - start):
            return False
        if segment.logprobs[start:end] != model_call.output_logprobs:
            return False
    return end == len(segment.token_ids)


@given(calls())
def test_no_call_is_dropped_or_moved(made: tuple[ModelCall, ...]) -> None:
    assert [index for segment in segments(made) for index in segment.calls] == [
        model_call.index for model_call in made
    ]


@given(calls())
def test_a_segment_holds_every_call_as_the_engine_saw_it(made: tuple[ModelCall, ...]) -> None:
    assert all(covered(segment, made) for segment in segments(made))


@given(calls())
def test_each_sampled_token_counts_once(made: tuple[ModelCall, ...]) -> None:
    sampled = [
        (token, logprob)
        for segment in segments(made)
        for token, logprob, mask in zip(
            segment.token_ids, segment.logprobs, segment.loss_mask, strict=True
        )
        if mask == 1
    ]
    assert sampled == [
        pair
        for model_call in made
        for pair in zip(model_call.output_token_ids, model_call.output_logprobs, strict=True)
    ]


@given(calls())
def test_tokens_that_were_not_sampled_have_no_logprob(made: tuple[ModelCall, ...]) -> None:
    for segment in segments(made):
        pairs = zip(segment.logprobs, segment.loss_mask, strict=True)
        assert all(logprob == 0.0 for logprob, mask in pairs if mask == 0)


def test_turns_that_extend_one_another_become_one_sequence() -> None:
    (segment,) = segments((call(0, (1, 2), (3,)), call(1, (1, 2, 3, 4), (5, 6))))
    assert segment.token_ids == (1, 2, 3, 4, 5, 6)
    assert segment.loss_mask == (0, 0, 1, 0, 1, 1)
    assert segment.logprobs == (0.0, 0.0, -0.1, 0.0, -0.2, -1.2)


def test_a_turn_whose_history_was_changed_starts_a_sequence_of_its_own() -> None:
    first, second = segments((call(0, (1, 2), (3,)), call(1, (1, 2, 9, 4), (5,))))
    assert (first.calls, first.token_ids) == ((0,), (1, 2, 3))
    assert (second.calls, second.token_ids) == ((1,), (1, 2, 9, 4, 5))


def test_no_call_makes_no_segment() -> None:
    assert segments(()) == ()
