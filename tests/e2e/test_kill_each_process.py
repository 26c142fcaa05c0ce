"""Whichever process is killed at whatever moment, each rollout ends once, with its result."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from rollout_client import RolloutClient
from rollout_crds.result import Outcome
from rollout_crds.rolloutjob import RolloutJob, TaskSource
from tests.support.engine import cached
from tests.support.processes import wait_until
from tests.support.stub_jobs import SCRIPT, arithmetic_job, stub_pool
from tests.support.stub_llm import RunningStub, stub_llm
from tests.support.system import System, running_system

pytestmark = [pytest.mark.e2e, pytest.mark.sandbox, pytest.mark.timeout(420)]

TASKS, SAMPLES = 25, 2
VICTIMS = ("run", "gateway", "init", "operator", "eval", "node", "run", "gateway")


@pytest.fixture
def stub() -> Iterator[RunningStub]:
    with stub_llm(
        tokenizer=cached("models", "tiny-qwen3"), script=SCRIPT, latency_ms=300
    ) as running:
        yield running


@pytest.fixture
def system() -> Iterator[System]:
    cached("images", "busybox")
    with running_system() as running:
        yield running


def _finished(client: RolloutClient, job: str) -> int:
    return client.progress(job).finished


def test_fifty_rollouts_end_exactly_once_when_each_process_is_killed_in_turn(
    system: System, stub: RunningStub
) -> None:
    job = arithmetic_job("chaos", TASKS, SAMPLES, stages={"run": {"concurrency": 4}})
    system.apply(stub_pool(stub.url, cached("models", "tiny-qwen3")), job)
    total = TASKS * SAMPLES
    with system.client() as client:
        for number, victim in enumerate(VICTIMS):
            threshold = 1 + number * (total - 8) // len(VICTIMS)
            wait_until(
                lambda threshold=threshold: _finished(client, "chaos") >= threshold,
                f"{threshold} finished rollouts before {victim} is killed",
                120,
            )
            assert _finished(client, "chaos") < total, "too fast: nothing left to disturb"
            if victim == "node":
                system.kill_node()
                system.start()
            else:
                system.kill(victim)
        client.wait(RolloutJob, "chaos", "Succeeded", timeout_seconds=180)
        records = list(client.trajectories("chaos"))
        rows = client.rollouts("chaos")
    ids = Counter(record.rollout_id for record in records)
    assert len(ids) == total
    assert set(ids.values()) == {1}
    assert {row.rollout_id for row in rows} == set(ids)
    assert {(record.task_id, record.sample_index) for record in records} == {
        (f"t{task}", sample) for task in range(TASKS) for sample in range(SAMPLES)
    }
    assert Counter((record.outcome, record.reward) for record in records) == {
        (Outcome.SCORED, 1.0): total
    }
    assert all(record.trajectory and len(record.trajectory.calls) == 2 for record in records)


def test_tasks_are_loaded_to_the_end_when_the_gateway_is_killed_half_way(
    system: System, stub: RunningStub, tmp_path: Path
) -> None:
    count, samples = 2000, 8
    source = tmp_path / "tasks.jsonl"
    lines = (json.dumps({"id": f"t{i}", "instruction": "q"}) for i in range(count))
    source.write_text("\n".join(lines))
    system.apply(stub_pool(stub.url, cached("models", "tiny-qwen3")))
    job = arithmetic_job("big", 1, samples)
    tasks = TaskSource(uri=f"file://{source}")
    spec = job.spec.model_copy(update={"tasks": tasks})
    system.apply(job.model_copy(update={"spec": spec}))
    with system.client() as client:
        wait_until(lambda: client.progress("big").groups > 0, "the first tasks")
        assert client.progress("big").groups < count, "too fast: nothing left to load"
        system.kill("gateway")
        client.wait(RolloutJob, "big", "Accepted", timeout_seconds=120)
        assert client.progress("big").rollouts == count * samples
        client.delete(RolloutJob, "big")
        client.wait_deleted(RolloutJob, "big", timeout_seconds=60)
