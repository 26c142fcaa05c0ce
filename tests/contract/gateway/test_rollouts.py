"""A job from its submission to its records, and what workers may do on the way."""

import asyncio
import time
from collections.abc import Callable

import httpx2
import pytest

from rollout_crds.task import Grading
from tests.contract.gateway.samples import (
    EVAL_DONE,
    INIT_DONE,
    RUN_DONE,
    Worker,
    failed,
    progress,
    records,
    register_llm,
    set_state,
    submit,
    tasks,
    trajectory,
)


async def test_a_rollout_goes_through_three_stages_to_a_record(worker: Worker) -> None:
    answer = await submit(worker.http, samplesPerTask=2)
    assert answer.json() == {"groups": 1, "rollouts": 2, "invalid_tasks": []}
    assert await worker.lease("run") == []

    (init,) = await worker.do("init")
    assert init.rollout_id is None
    assert init.task.grading.answer == "2"
    runs = await worker.do("run")
    assert [run.sample_index for run in runs] == [0, 1]
    assert all(run.environment and run.backend for run in runs)
    assert all(run.task.grading == Grading(artifacts=["out"]) for run in runs)
    assert runs[0].backend is not None
    assert runs[0].backend.pool.model == "m"
    evals = await worker.do("eval")
    assert {run.rollout_id for run in evals} == {run.rollout_id for run in runs}
    assert evals[0].task.grading.answer == "2"
    assert evals[0].artifact is not None
    assert evals[0].artifact.answer == "2"
    assert evals[0].trajectory is not None
    assert evals[0].trajectory.model_dump(mode="json", exclude_defaults=True) == trajectory()

    lines, end = await records(worker.http)
    assert end == {"type": "end", "cursor": 2, "complete": True}
    assert [line["outcome"] for line in lines] == ["scored", "scored"]
    record = lines[0]
    assert record["reward"] == 1.0
    assert record["details"] == {"output": "1 passed"}
    assert record["trainable"] is True
    assert record["metadata"] == {"k": None}
    assert record["trajectory"]["calls"][0]["output_token_ids"] == [0, 1, 2]
    assert set(record["stages"]) == {"init", "run", "eval"}
    assert record["stages"]["run"]["attempts"] == 1

    view = (await worker.http.get("/internal/v1/jobs/u1")).json()
    assert view["complete"] is True
    assert (view["usable_groups"], view["failed_groups"]) == (1, 0)
    assert view["progress"]["stages"]["eval"]["done"] == 2
    assert view["progress"]["outputTokens"] == 6


async def test_the_same_completion_again_is_accepted_and_another_is_refused(worker: Worker) -> None:
    await submit(worker.http)
    await worker.do("init")
    (lease,) = await worker.do("run")
    assert (await worker.complete(lease, RUN_DONE)).status_code == 204
    other = {**RUN_DONE, "artifact": {"answer": "3"}}
    refused = await worker.complete(lease, other)
    assert refused.status_code == 409
    assert refused.json()["reason"] == "LeaseLost"
    (evaluation,) = await worker.do("eval")
    assert evaluation.artifact is not None
    assert evaluation.artifact.answer == "2"
    assert (await worker.complete(evaluation, EVAL_DONE)).status_code == 204
    lines, _ = await records(worker.http)
    assert len(lines) == 1


async def test_a_retryable_failure_is_tried_again_until_attempts_run_out(worker: Worker) -> None:
    await submit(worker.http)
    await worker.do("init")
    for attempt in (1, 2, 3):
        (lease,) = await worker.lease("run")
        assert lease.attempt == attempt
        result = failed("run", attempt, trajectory=trajectory())
        assert (await worker.complete(lease, result)).status_code == 204
    assert await worker.lease("run") == []
    ((record,), end) = await records(worker.http)
    assert end["complete"]
    assert record["outcome"] == "infra_error"
    assert record["reward"] is None
    assert record["untrainable_reasons"] == ["infra_error"]
    assert record["failure"]["reason"] == "SandboxDied"
    assert record["stages"]["run"]["attempts"] == 3
    assert record["trajectory"]["calls"][0]["prompt_token_ids"] == [1, 2, 3, 4]
    counters = (await progress(worker.http))["stages"]
    assert counters["run"]["failed"] == 1
    assert counters["eval"]["cancelled"] == 1


async def test_a_rollout_tells_why_it_is_tried_again_until_its_stage_is_done(
    worker: Worker,
) -> None:
    async def failures() -> list[str | None]:
        items = (await worker.http.get("/v1/rolloutjobs/j/rollouts")).json()["items"]
        return [
            i["failure"] and f"{i['failure']['stage']} {i['failure']['attempt']}" for i in items
        ]

    await submit(worker.http, samplesPerTask=2)
    (lease,) = await worker.lease("init")
    await worker.complete(lease, failed("init"))
    assert await failures() == ["init 1", "init 1"]
    await worker.do("init")
    assert await failures() == [None, None]
    first, second = await worker.lease("run")
    await worker.complete(first, failed("run"))
    assert sorted(await failures(), key=str) == [None, "run 1"]
    await worker.complete(second, RUN_DONE)
    await worker.do("run")
    await worker.do("eval")
    assert await failures() == [None, None]


async def test_backoff_delays_the_next_attempt(
    worker: Worker, advance: Callable[[float], None]
) -> None:
    await submit(worker.http, retry={"maxAttempts": 3, "backoffSeconds": 30})
    (lease,) = await worker.lease("init")
    await worker.complete(lease, failed("init"))
    assert await worker.lease("init") == []
    assert (await progress(worker.http))["stages"]["init"]["queued"] == 1
    waiting = asyncio.create_task(worker.lease("init", wait=20))
    await asyncio.sleep(0.1)
    advance(30.1)
    (again,) = await asyncio.wait_for(waiting, 5)
    assert again.attempt == 2


async def test_a_policy_error_is_final_and_has_no_reward(worker: Worker) -> None:
    await submit(worker.http)
    await worker.do("init")
    await worker.do("run")
    await worker.do("eval", failed("eval", policy_error=True))
    ((record,), _) = await records(worker.http)
    assert (record["outcome"], record["reward"]) == ("policy_error", None)
    assert record["trajectory"] is not None


async def test_failed_init_ends_all_rollouts_of_the_group(worker: Worker) -> None:
    await submit(worker.http, samplesPerTask=3, tasks=tasks(2))
    leases = await worker.lease("init")
    await worker.complete(leases[0], failed("init", retryable=False))
    await worker.complete(leases[1], INIT_DONE)
    lines, end = await records(worker.http)
    assert [line["failure"]["reason"] for line in lines] == ["EnvironmentFailed"] * 3
    assert "SandboxDied: gone" in lines[0]["failure"]["message"]
    assert lines[0]["trajectory"] is None
    assert end["complete"] is False
    assert len(await worker.lease("run")) == 3
    view = (await worker.http.get("/internal/v1/jobs/u1")).json()
    assert (view["usable_groups"], view["failed_groups"]) == (0, 1)


async def test_a_handed_back_unit_is_not_charged(worker: Worker) -> None:
    await submit(worker.http, retry={"maxAttempts": 1, "backoffSeconds": 0})
    for attempt in range(1, 4):
        (lease,) = await worker.lease("init")
        assert lease.attempt == attempt
        await worker.complete(lease, {"kind": "handed_back", "reason": "stopping"})
    await worker.do("init")
    assert len(await worker.lease("run")) == 1


async def test_an_expired_lease_is_given_to_another_and_its_late_result_refused(
    worker: Worker, advance: Callable[[float], None]
) -> None:
    await submit(worker.http)
    (lost,) = await worker.lease("init")
    other = Worker(worker.http, "other")
    waiting = asyncio.create_task(other.lease("init", wait=20))
    await asyncio.sleep(0.1)
    advance(15.1)
    (second,) = await asyncio.wait_for(waiting, 5)
    assert (second.work_id, second.attempt) == (lost.work_id, 2)
    assert (await worker.heartbeat(lost))[0]["reason"] == "lost"
    assert (await worker.complete(lost, INIT_DONE)).status_code == 409
    assert (await other.complete(second, INIT_DONE)).status_code == 204


async def test_heartbeats_keep_leases_and_show_progress(
    worker: Worker, advance: Callable[[float], None]
) -> None:
    await submit(worker.http)
    await worker.do("init")
    (lease,) = await worker.lease("run")
    for _ in range(3):
        advance(10)
        assert await worker.heartbeat(lease, turns=2, prompt_tokens=7, output_tokens=5) == []
    counters = await progress(worker.http)
    assert (counters["promptTokens"], counters["outputTokens"]) == (7, 5)
    (row,) = (await worker.http.get("/v1/rolloutjobs/j/rollouts")).json()["items"]
    assert (row["stage"], row["state"], row["turns"]) == ("run", "running", 2)
    assert (await worker.complete(lease, RUN_DONE)).status_code == 204
    assert (await progress(worker.http))["promptTokens"] == 4


async def test_lease_expiry_ends_as_infra_error_when_attempts_run_out(
    worker: Worker, advance: Callable[[float], None]
) -> None:
    await submit(worker.http, retry={"maxAttempts": 1, "backoffSeconds": 0})
    await worker.do("init")
    assert await worker.lease("run")
    advance(16)
    ((record,), _) = await records(worker.http, wait_seconds=10)
    assert record["failure"]["reason"] == "LeaseExpired"
    assert record["failure"]["boundary"] == "worker"


async def test_a_restarted_worker_gives_its_old_leases_back_at_once(worker: Worker) -> None:
    await submit(worker.http, retry={"maxAttempts": 3, "backoffSeconds": 600})
    (lost,) = await worker.lease("init")
    again = Worker(worker.http, incarnation="2")
    await again.hello()
    (lease,) = await again.lease("init")
    assert (lease.work_id, lease.attempt) == (lost.work_id, 2)
    assert (await worker.complete(lost, INIT_DONE)).status_code == 409


async def test_run_waits_for_a_healthy_backend_and_takes_the_least_assigned(
    http: httpx2.AsyncClient,
) -> None:
    worker = Worker(http)
    await submit(http, samplesPerTask=6)
    await worker.do("init")
    assert await worker.lease("run") == []
    await register_llm(http, "b1", healthy=False)
    assert await worker.lease("run") == []
    waiting = asyncio.create_task(worker.lease("run", capacity=2, wait=20))
    await asyncio.sleep(0.1)
    await register_llm(http, "b1")
    first = await asyncio.wait_for(waiting, 5)
    await register_llm(http, "b1", "b2")
    more = await worker.lease("run", capacity=2)
    assert [x.backend.name for x in first + more if x.backend] == ["b1", "b1", "b2", "b2"]
    for lease in more:
        await worker.complete(lease, RUN_DONE)
    (next_one,) = await worker.lease("run", capacity=1)
    assert next_one.backend is not None
    assert next_one.backend.name == "b2"


async def test_cancelling_ends_queued_and_leased_work(worker: Worker) -> None:
    await submit(worker.http, samplesPerTask=3)
    await worker.do("init")
    leases = await worker.lease("run", capacity=2)
    await worker.complete(leases[0], RUN_DONE)
    await set_state(worker.http, cancelled="deadline")
    assert [x["reason"] for x in await worker.heartbeat(leases[1])] == ["cancelled"]
    assert (await worker.complete(leases[1], RUN_DONE)).status_code == 409
    assert await worker.lease("run") == []
    assert await worker.lease("eval") == []
    lines, end = await records(worker.http)
    assert end["complete"]
    assert [line["outcome"] for line in lines] == ["cancelled"] * 3
    assert [line["cancel_reason"] for line in lines] == ["deadline"] * 3
    assert sum(line["trajectory"] is not None for line in lines) == 1
    await set_state(worker.http, cancelled=None)
    assert await worker.lease("run") == []


async def test_changed_stages_count_for_the_leases_that_follow(worker: Worker) -> None:
    await submit(worker.http)
    (first,) = await worker.do("init")
    assert first.active_deadline_seconds == 1800
    await set_state(worker.http, stages={"run": {"activeDeadlineSeconds": 7}})
    (changed,) = await worker.do("run")
    assert changed.active_deadline_seconds == changed.spec.stages.run.active_deadline_seconds == 7
    await set_state(worker.http, priority=1)
    (unchanged,) = await worker.do("eval")
    assert unchanged.spec.stages == changed.spec.stages


async def test_suspending_takes_leases_back_uncharged_and_resuming_wakes_workers(
    worker: Worker,
) -> None:
    await submit(worker.http, retry={"maxAttempts": 1, "backoffSeconds": 0})
    (lease,) = await worker.lease("init")
    await set_state(worker.http, suspended=True)
    assert await worker.lease("init") == []
    assert [x["reason"] for x in await worker.heartbeat(lease)] == ["suspended"]
    waiting = asyncio.create_task(worker.lease("init", wait=20))
    await asyncio.sleep(0.1)
    await set_state(worker.http, suspended=False)
    (again,) = await asyncio.wait_for(waiting, 5)
    assert again.attempt == 2
    assert (await worker.complete(again, INIT_DONE)).status_code == 204


async def test_pool_workers_serve_jobs_by_priority_then_in_turns(worker: Worker) -> None:
    for uid, priority in (("u1", 0), ("u2", 0), ("u3", 5)):
        pooled = {"poolRef": {"name": "warm"}, "priority": priority, "tasks": tasks(4)}
        await submit(worker.http, uid, uid, **pooled)
    leases = await worker.lease("init", capacity=8, pool="default/warm")
    assert [x.job_uid for x in leases[:4]] == ["u3"] * 4
    assert sorted(x.job_uid for x in leases[4:]) == ["u1", "u1", "u2", "u2"]
    assert await worker.lease("init", pool="default/other") == []


async def test_a_long_poll_ends_with_the_first_record(worker: Worker) -> None:
    await submit(worker.http)
    await worker.do("init")
    await worker.do("run")
    waiting = asyncio.create_task(records(worker.http, wait_seconds=20))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    started = time.monotonic()
    await worker.do("eval")
    lines, end = await asyncio.wait_for(waiting, 5)
    assert time.monotonic() - started < 2
    assert len(lines) == 1
    assert await records(worker.http, cursor=end["cursor"], wait_seconds=20) == ([], end)


async def test_each_waiting_worker_gets_one_of_the_units_that_appear(worker: Worker) -> None:
    workers = [Worker(worker.http, f"w{n}") for n in range(5)]
    waiting = [asyncio.create_task(w.lease("run", capacity=1, wait=20)) for w in workers]
    await submit(worker.http, samplesPerTask=5)
    await worker.do("init")
    async with asyncio.timeout(5):
        leases = [lease for found in await asyncio.gather(*waiting) for lease in found]
    assert len({lease.work_id for lease in leases}) == 5


@pytest.mark.parametrize(
    ("stage", "result", "field"),
    [
        ("init", RUN_DONE, "result.kind"),
        ("init", failed("run"), "result.failure.stage"),
        ("init", {"kind": "eval", "reward": "high"}, "result.reward"),
        ("init", {"kind": "nothing"}, "result"),
    ],
)
async def test_results_that_do_not_fit_are_refused(
    worker: Worker, stage: str, result: dict[str, object], field: str
) -> None:
    await submit(worker.http)
    (lease,) = await worker.lease(stage)
    answer = await worker.complete(lease, result)
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["errors"][0]["field"] == field
    assert (await worker.complete(lease, INIT_DONE)).status_code == 204


async def test_purging_removes_every_trace(worker: Worker) -> None:
    await submit(worker.http, samplesPerTask=2)
    await worker.do("init")
    leases = await worker.lease("run")
    await worker.complete(leases[0], RUN_DONE)
    assert (await worker.http.delete("/internal/v1/jobs/u1")).status_code == 204
    assert (await worker.http.get("/internal/v1/jobs/u1")).status_code == 404
    assert (await worker.complete(leases[1], RUN_DONE)).status_code == 409
    assert [x["reason"] for x in await worker.heartbeat(leases[1])] == ["lost"]
    assert (await worker.http.delete("/internal/v1/jobs/u1")).status_code == 204
