"""The gateway as a process: one per database, a private socket, a clean end, nothing lost."""

import asyncio
import contextlib
import json
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import httpx2
import pytest

from rollout_crds.wire import Lease
from tests.contract.gateway.samples import (
    SUCCESS,
    Worker,
    progress,
    records,
    register_llm,
    submit,
    tasks,
)
from tests.integration.gateway.conftest import GatewayProcess


def test_it_refuses_to_share_a_database(gateway: GatewayProcess) -> None:
    gateway.start()
    second = subprocess.run(gateway.command(), capture_output=True, text=True, timeout=20)
    assert second.returncode == 1
    (line,) = second.stderr.splitlines()
    assert "in use by another gateway" in line
    assert "--state-dir" in line
    assert gateway.socket.stat().st_mode & 0o777 == 0o600
    assert gateway.socket.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"this is no database, but long enough to be one" * 100, "not a database"), (None, "schema")],
)
def test_it_refuses_a_database_that_it_does_not_understand(
    gateway: GatewayProcess, content: bytes | None, message: str
) -> None:
    database = gateway.state / "gateway.db"
    if content is None:
        gateway.start()
        gateway.terminate()
        with contextlib.closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE counters SET value = 99 WHERE name = 'schema_version'")
    else:
        database.write_bytes(content)
    run = subprocess.run(gateway.command(), capture_output=True, text=True, timeout=20)
    assert run.returncode == 1
    (line,) = run.stderr.splitlines()
    assert message in line
    assert str(database) in line


async def test_sigterm_ends_long_polls_at_once(gateway: GatewayProcess) -> None:
    gateway.start()
    async with gateway.client() as http:
        polls = [
            asyncio.create_task(Worker(http).lease("run", wait=50)),
            asyncio.create_task(http.get("/v1/changes?since=1&timeoutSeconds=50")),
        ]
        await asyncio.sleep(0.3)
        started = time.monotonic()
        code, _ = await asyncio.to_thread(gateway.terminate)
        assert time.monotonic() - started < 3
        assert code == 0
        leases, changes = await asyncio.gather(*polls)
        assert leases == []
        assert changes.json()["changed"] == []
    assert not gateway.socket.exists()


def test_it_listens_on_tcp_when_asked(gateway: GatewayProcess, unused_tcp_port: int) -> None:
    process = subprocess.Popen(gateway.command("--port", str(unused_tcp_port)))
    try:
        _wait_for_port(unused_tcp_port)
        answer = httpx2.get(f"http://127.0.0.1:{unused_tcp_port}/healthz")
        assert answer.json() == {"status": "ok"}
        assert not gateway.socket.exists()
    finally:
        process.terminate()
        assert process.wait(20) == 0


async def test_kill_9_in_the_middle_of_completions_loses_and_doubles_nothing(
    gateway: GatewayProcess,
) -> None:
    gateway.start("--lease-seconds", "2")
    async with gateway.client() as http:
        await register_llm(http)
        await submit(http, tasks=tasks(25), samplesPerTask=8)
    finishing = asyncio.create_task(_work_until_done(gateway, rollouts=200))
    for finished in (40, 120):
        await _wait_for(gateway, finished)
        await asyncio.to_thread(gateway.kill)
        await asyncio.to_thread(gateway.start, "--lease-seconds", "2")
    accepted = await asyncio.wait_for(finishing, 60)
    async with gateway.client() as http:
        lines, end = await records(http, limit=1000)
        stages = (await progress(http))["stages"]
    assert len(lines) == 200
    assert len({line["rollout_id"] for line in lines}) == 200
    assert {line["outcome"] for line in lines} == {"scored"}
    assert end == {"type": "end", "cursor": 200, "complete": True}
    assert stages["eval"]["done"] == stages["run"]["done"] == 200
    assert accepted >= {line["rollout_id"] for line in lines}


async def test_kill_9_while_tasks_are_loaded_duplicates_nothing(
    gateway: GatewayProcess, tmp_path: Path
) -> None:
    count, samples = 3000, 8
    path = tmp_path / "tasks.jsonl"
    path.write_text(
        "".join(f"{json.dumps({'id': f't{n}', 'instruction': 'x'})}\n" for n in range(count))
    )
    gateway.start()
    source = {"tasks": {"uri": f"file://{path}"}, "samplesPerTask": samples}
    async with gateway.client() as http:
        loading = asyncio.create_task(submit(http, **source))
        loaded = 0
        while loaded == 0:
            await asyncio.sleep(0.01)
            view = await http.get("/internal/v1/jobs/u1")
            loaded = view.json()["progress"]["groups"] if view.status_code == 200 else 0
        await asyncio.to_thread(gateway.kill)
        await asyncio.gather(loading, return_exceptions=True)
    assert loaded < count
    gateway.start()
    async with gateway.client() as http:
        assert await Worker(http).lease("init") == []
        answer = (await submit(http, **source)).json()
        assert (answer["groups"], answer["rollouts"]) == (count, count * samples)
        leases = await Worker(http).lease("init", capacity=4096)
        assert [x.task.id for x in leases] == [f"t{n}" for n in range(count)]


async def _work_until_done(gateway: GatewayProcess, rollouts: int) -> set[str]:
    """Workers of all stages that retry through restarts; says which EVALs were accepted."""
    accepted: set[str] = set()

    async def work(http: httpx2.AsyncClient, stage: str, number: int) -> None:
        worker = Worker(http, f"{stage}{number}")
        while len(accepted) < rollouts:
            try:
                leases = await worker.lease(stage, capacity=3, wait=0.5)
            except httpx2.TransportError:
                await asyncio.sleep(0.05)
                continue
            for lease in leases:
                await _complete(worker, lease, accepted)

    async with gateway.client() as http:
        await asyncio.gather(*(work(http, stage, n) for stage in SUCCESS for n in range(3)))
    return accepted


async def _complete(worker: Worker, lease: Lease, accepted: set[str]) -> None:
    """Send a completion until it is answered."""
    for _ in range(400):
        try:
            answer = await worker.complete(lease, SUCCESS[lease.stage.value])
        except httpx2.TransportError:
            await asyncio.sleep(0.05)
            continue
        assert answer.status_code in {204, 409}, answer.text
        if answer.status_code == 204 and lease.stage == "eval":
            assert lease.rollout_id not in accepted
            accepted.add(lease.rollout_id or "")
        return
    pytest.fail("the gateway did not come back")


async def _wait_for(gateway: GatewayProcess, finished: int) -> None:
    """Wait for the record with this sequence number."""
    async with gateway.client() as http, asyncio.timeout(60):
        while not (await records(http, cursor=finished - 1, limit=1, wait_seconds=60))[0]:
            pass


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    pytest.fail(f"nothing listens on port {port}")


async def test_a_worker_that_hung_up_while_waiting_costs_no_attempt(
    gateway: GatewayProcess,
) -> None:
    gateway.start()
    async with gateway.client() as http:
        gone = asyncio.create_task(Worker(http, "gone").lease("init", wait=30))
        await asyncio.sleep(0.3)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        waiting = asyncio.create_task(Worker(http, "here").lease("init", capacity=1, wait=30))
        await asyncio.sleep(0.3)
        await submit(http)
        (lease,) = await asyncio.wait_for(waiting, 10)
        assert lease.attempt == 1
