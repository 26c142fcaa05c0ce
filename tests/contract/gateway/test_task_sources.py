"""Loading tasks: broken ones are reported, the others go on, and nothing is loaded twice."""

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from rollout_api.core.task_lines import Entry
from rollout_api.services import jobs
from rollout_api.services.task_source import next_chunk
from tests.contract.gateway.samples import Worker, progress, set_state, submit, tasks


def lines(path: Path, *texts: str | bytes) -> dict[str, str]:
    path.write_bytes(b"\n".join(t.encode() if isinstance(t, str) else t for t in texts))
    return {"uri": f"file://{path}"}


def task(name: str) -> str:
    return json.dumps({"id": name, "instruction": "do"})


async def test_broken_lines_are_reported_and_the_others_go_on(
    worker: Worker, tmp_path: Path
) -> None:
    source = lines(
        tmp_path / "tasks.jsonl",
        task("a"),
        "",
        "{broken",
        '{"id": "b"}',
        '{"id": "c", "instruction": "x", "grading": {"anwser": "1"}}',
        task("a"),
        b"\xff\xfe",
        task("d"),
    )
    answer = (await submit(worker.http, tasks=source, samplesPerTask=2)).json()
    assert (answer["groups"], answer["rollouts"]) == (2, 4)
    invalid = [(t["line"], t["field"]) for t in answer["invalid_tasks"]]
    assert invalid == [(3, ""), (4, "instruction"), (5, "grading.anwser"), (6, "id"), (7, "")]
    assert "used before" in answer["invalid_tasks"][3]["message"]
    assert (await progress(worker.http))["invalidTasks"] == 5
    assert [x.task.id for x in await worker.lease("init")] == ["a", "d"]


async def test_submitting_again_changes_nothing(worker: Worker, tmp_path: Path) -> None:
    source = lines(tmp_path / "tasks.jsonl", task("a"), "broken", task("b"))
    first = await submit(worker.http, tasks=source)
    lines(tmp_path / "tasks.jsonl", task("other"))
    again = await submit(worker.http, tasks=source, samplesPerTask=7)
    assert again.json() == first.json()


async def test_submitting_twice_at_once_loads_once(http: httpx2.AsyncClient) -> None:
    answers = await asyncio.gather(*(submit(http, tasks=tasks(200)) for _ in range(5)))
    assert [a.json()["groups"] for a in answers] == [200] * 5


async def test_an_unreadable_source_leaves_nothing_behind(worker: Worker, tmp_path: Path) -> None:
    for uri in (f"file://{tmp_path}/missing.jsonl", f"file://{tmp_path}", "nosuch://x/y"):
        refused = await submit(worker.http, tasks={"uri": uri})
        assert refused.status_code == 422, uri
        assert refused.json()["reason"] == "TaskSourceUnreadable"
        assert uri in refused.json()["detail"]
        assert (await worker.http.get("/internal/v1/jobs/u1")).status_code == 404


async def test_a_source_without_a_valid_task_is_refused_with_its_errors(
    worker: Worker, tmp_path: Path
) -> None:
    refused = await submit(worker.http, tasks=lines(tmp_path / "t", "broken", '{"id": "x"}'))
    assert refused.status_code == 422
    assert refused.json()["reason"] == "TaskSourceUnreadable"
    fields = [e["field"] for e in refused.json()["errors"]]
    assert fields == ["line 1", "line 2: instruction"]
    good = await submit(worker.http, tasks=lines(tmp_path / "t", task("x")))
    assert good.json()["groups"] == 1


async def test_a_job_that_is_cancelled_while_it_loads_ends_completely(
    worker: Worker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled = threading.Event()

    def after_the_first_chunk(entries: Iterator[Entry], size: int) -> list[Entry]:
        chunk = next_chunk(entries, size)
        assert (chunk and chunk[0].line == 1) or cancelled.wait(30)
        return chunk

    source = lines(tmp_path / "tasks.jsonl", *(task(f"t{n}") for n in range(500)))
    monkeypatch.setattr(jobs, "next_chunk", after_the_first_chunk)
    loading = asyncio.create_task(submit(worker.http, tasks=source, samplesPerTask=2))
    for _ in range(1000):
        if (await worker.http.get("/internal/v1/jobs/u1")).status_code == 200:
            break
        await asyncio.sleep(0.01)
    await set_state(worker.http, cancelled="not needed")
    assert not loading.done()
    cancelled.set()
    assert (await loading).json()["rollouts"] == 1000
    view = (await worker.http.get("/internal/v1/jobs/u1")).json()
    assert view["complete"] is True
    assert view["progress"]["outcomes"]["cancelled"] == 1000
