"""A trajectory is trainable only when its log-probs are those of the policy's full distribution."""

from typing import Any

import pytest

from rollout_crds.trajectory import ModelCall, SamplingParams, Trajectory, provenance_issues

SAMPLING = {"temperature": 0.7, "top_p": 1.0, "top_k": -1, "max_tokens": 8}


def trajectory(*, mode: str = "processed_logprobs", output: int = 1, **sampling: Any) -> Trajectory:
    call = ModelCall.model_validate(
        {
            "index": 0,
            "request_id": "r",
            "backend": "b",
            "prompt_token_ids": (1,),
            "output_token_ids": (2,) * output,
            "output_logprobs": (-0.5,) * output,
            "logprobs_mode": mode,
            "finish_reason": "stop",
            "sampling": SamplingParams(**{**SAMPLING, **sampling}),
            "started_at": 0.0,
            "duration_seconds": 0.0,
        }
    )
    return Trajectory(model="m", calls=(call,), messages=(), stop_reason="finished")


CASES: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({}, ()),
    ({"temperature": 1.0, "mode": "raw_logprobs"}, ()),
    ({"top_k": 0}, ()),
    ({"mode": "raw_logprobs"}, ("logprobs_before_temperature",)),
    ({"temperature": 0.0}, ("greedy_decoding",)),
    (
        {"temperature": 0.0, "mode": "raw_logprobs"},
        ("logprobs_before_temperature", "greedy_decoding"),
    ),
    ({"top_p": 0.9}, ("truncated_distribution",)),
    ({"top_k": 20}, ("truncated_distribution",)),
    ({"forced": True}, ("forced_decoding",)),
    ({"output": 0}, ("no_output_token",)),
]


@pytest.mark.parametrize(("change", "issues"), CASES, ids=str)
def test_issues(change: dict[str, Any], issues: tuple[str, ...]) -> None:
    assert provenance_issues(trajectory(**change)) == issues


def test_one_bad_call_is_enough() -> None:
    calls = trajectory().calls + trajectory(forced=True).calls
    mixed = Trajectory(model="m", calls=calls, messages=(), stop_reason="finished")
    assert provenance_issues(mixed) == ("forced_decoding",)


def test_a_rollout_that_never_called_the_model_is_not_trainable() -> None:
    empty = Trajectory(model="m", calls=(), messages=(), stop_reason="failed")
    assert provenance_issues(empty) == ("no_model_call",)


def test_a_call_without_a_logprob_for_each_token_is_refused() -> None:
    with pytest.raises(ValueError, match="1 log-probs for 2 tokens in call 0"):
        trajectory(output=2).calls[0].model_validate(
            {**trajectory(output=2).calls[0].model_dump(), "output_logprobs": (-0.5,)}
        )
