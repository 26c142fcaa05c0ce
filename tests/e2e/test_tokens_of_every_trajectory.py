"""Each model call of each trajectory is, id by id, what the real engine put on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from rollout_crds.llmpool import LLMPool
from rollout_crds.manifest import load_manifests
from rollout_crds.result import Outcome, RolloutRecord
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.trajectory import ModelCall, segments
from rollout_stages.tokens.conversation import ChatTokenizer
from tests.support.engine import Engine, cached, tiny_engine
from tests.support.recording_proxy import RecordingProxy
from tests.support.stub_jobs import arithmetic_job
from tests.support.system import System, running_system

__all__ = ["tiny_engine"]

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.engine,
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
]

EXAMPLES = Path(__file__).parents[2] / "examples"
Exchanges = dict[str, tuple[dict[str, Any], dict[str, Any]]]


@pytest.fixture
async def witness(tiny_engine: Engine, tmp_path: Path) -> AsyncIterator[RecordingProxy]:
    async with RecordingProxy(tiny_engine.url, tmp_path / "engine.sock") as proxy:
        yield proxy


def _pool(witness: RecordingProxy, engine: Engine) -> LLMPool:
    spec = {
        "model": engine.model,
        "tokenizer": str(engine.folder),
        "endpoints": [{"url": witness.url}],
    }
    return LLMPool.model_validate({"metadata": {"name": "tiny"}, "spec": spec})


def _sampled_job() -> RolloutJob:
    llm = {"poolRef": {"name": "tiny"}, "maxTurns": 4, "sampling": {"maxTokens": 48, "seed": 3}}
    return arithmetic_job("sampled", tasks=4, samples=2, llm=llm)


def _demonstration_job() -> RolloutJob:
    path = EXAMPLES / "coding-demonstration" / "rolloutjob.yaml"
    job = next(r for r in load_manifests(path) if isinstance(r, RolloutJob))
    tasks = {"uri": (EXAMPLES / "coding" / "tasks.jsonl").as_uri()}
    return job.model_copy(
        update={"spec": job.spec.model_copy(update={"tasks": type(job.spec.tasks)(**tasks)})}
    )


def _run(system: System, pool: LLMPool, *jobs: RolloutJob) -> dict[str, list[RolloutRecord]]:
    with system.client() as client:
        for resource in (pool, *jobs):
            client.apply(resource)
        return {job.metadata.name: list(client.trajectories(job.metadata.name)) for job in jobs}


async def test_every_call_is_what_the_engine_returned_and_none_is_missing(
    witness: RecordingProxy, tiny_engine: Engine
) -> None:
    for name in ("busybox", "python"):
        cached("images", name)
    with running_system() as system:
        records = await asyncio.to_thread(
            _run, system, _pool(witness, tiny_engine), _sampled_job(), _demonstration_job()
        )
    assert [len(records[name]) for name in ("sampled", "coding-demonstration")] == [8, 1]
    every = [*records["sampled"], *records["coding-demonstration"]]
    calls = [call for record in every for call in _calls(record)]

    returned = _model_calls(witness)
    assert len(returned) == len(calls)
    for call in calls:
        _assert_recorded_as_returned(call, *returned[f"generate-tokens-{call.request_id}"])

    assert all(record.outcome is Outcome.SCORED for record in every)
    assert all(record.trainable and record.reward == 0.0 for record in records["sampled"])
    (solved,) = records["coding-demonstration"]
    assert solved.reward == 1.0
    assert solved.untrainable_reasons == ("forced_decoding",)
    assert len(_calls(solved)) > 1
    _assert_one_segment_that_retokenising_would_change(solved, tiny_engine)


def _calls(record: RolloutRecord) -> tuple[ModelCall, ...]:
    assert record.trajectory is not None, record.failure
    return record.trajectory.calls


def _model_calls(witness: RecordingProxy) -> Exchanges:
    exchanges = [(sent, answer) for sent, answer in witness.exchanges if "choices" in answer]
    by_id = {answer["request_id"]: (sent, answer) for sent, answer in exchanges}
    assert len(by_id) == len(exchanges)
    return by_id


def _assert_recorded_as_returned(
    call: ModelCall, sent: dict[str, Any], answer: dict[str, Any]
) -> None:
    (choice,) = answer["choices"]
    assert list(call.prompt_token_ids) == answer["prompt_token_ids"] == sent["token_ids"]
    assert list(call.output_token_ids) == choice["token_ids"]
    logprobs = choice["logprobs"]["content"]
    assert list(call.output_logprobs) == [entry["logprob"] for entry in logprobs]
    assert list(call.output_token_ids) == [entry["token_id"] for entry in logprobs]
    assert call.finish_reason == choice["finish_reason"]
    assert call.sampling.temperature == sent["sampling_params"]["temperature"]


def _assert_one_segment_that_retokenising_would_change(
    record: RolloutRecord, engine: Engine
) -> None:
    calls = _calls(record)
    (segment,) = segments(calls)
    assert segment.calls == tuple(range(len(calls)))
    sampled = [i for i, mask in zip(segment.token_ids, segment.loss_mask, strict=True) if mask]
    assert sampled == [token for call in calls for token in call.output_token_ids]
    tokenizer = ChatTokenizer.from_directory(engine.folder)
    text = tokenizer.text(calls[0].output_token_ids)
    again = tokenizer._encode(text)
    assert again != calls[0].output_token_ids[: len(again)]
