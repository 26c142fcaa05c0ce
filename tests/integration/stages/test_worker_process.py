"""`rollout-stage` as a process, against a gateway that gives it what the test wants."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from rollout_crds.result import Stage
from rollout_crds.rolloutjob import RolloutSpec
from rollout_crds.task import Task
from rollout_crds.wire import Lease
from tests.unit.stages.leases import lease

IDLE_BYTES = 40 * 1024 * 1024
SLEEPY = Task.model_validate(
    {
        "id": "t",
        "instruction": "?",
        "environment": {"setup": ["echo started; sleep 300"]},
        "grading": {"command": "true"},
    }
)


class Gateway:
    """The internal API over a Unix socket: gives leases, keeps completions."""

    def __init__(self, socket: Path) -> None:
        self.url = f"unix://{socket}"
        self.waiting: list[Lease] = []
        self.asked = asyncio.Event()
        self.completions: list[dict[str, Any]] = []
        self.completed = asyncio.Event()
        post = ["POST"]
        app = Starlette(
            routes=[
                Route("/internal/v1/workers", self._hello, methods=post),
                Route("/internal/v1/leases", self._lease, methods=post),
                Route("/internal/v1/heartbeats", self._heartbeat, methods=post),
                Route("/internal/v1/completions", self._complete, methods=post),
            ]
        )
        self.server = uvicorn.Server(
            uvicorn.Config(app, uds=str(socket), log_config=None, lifespan="off")
        )

    async def _hello(self, _: Request) -> Response:
        return Response(status_code=204)

    async def _lease(self, _: Request) -> Response:
        self.asked.set()
        given, self.waiting = self.waiting, []
        if not given:
            await asyncio.sleep(0.2)
        return JSONResponse({"leases": [g.model_dump(mode="json", by_alias=True) for g in given]})

    async def _heartbeat(self, _: Request) -> Response:
        return JSONResponse({"revoked": []})

    async def _complete(self, request: Request) -> Response:
        self.completions.append(await request.json())
        self.completed.set()
        return Response(status_code=204)


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    gateway = Gateway(tmp_path / "g.sock")
    serving = asyncio.create_task(gateway.server._serve())
    while not gateway.server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    yield gateway
    gateway.server.should_exit = True
    await serving


async def start(stage: Stage, gateway: Gateway, tmp_path: Path) -> asyncio.subprocess.Process:
    settings = {
        "ROLLOUT_GATEWAY_URL": gateway.url,
        "ROLLOUT_JOB_UID": "uid",
        "ROLLOUT_BLOB_URL": f"file://{tmp_path}/blobs",
        "ROLLOUT_WORK_DIR": str(tmp_path / "work"),
        "ROLLOUT_POD_NAME": f"{stage}-0",
    }
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "rollout_stages", stage.value), env=os.environ | settings
    )


@pytest.mark.parametrize("stage", list(Stage))
async def test_idle_worker_is_small(stage: Stage, gateway: Gateway, tmp_path: Path) -> None:
    process = await start(stage, gateway, tmp_path)
    try:
        await asyncio.wait_for(gateway.asked.wait(), 30)
        await asyncio.sleep(0.5)
        used = psutil.Process(process.pid).memory_full_info().uss
        print(f"{stage}: {used / 2**20:.1f} MiB of its own")
        assert used < IDLE_BYTES
    finally:
        process.terminate()
        assert await asyncio.wait_for(process.wait(), 10) == 0


@pytest.mark.sandbox
async def test_terminated_worker_hands_back_and_leaves_nothing(
    gateway: Gateway, tmp_path: Path, spec: RolloutSpec
) -> None:
    gateway.waiting = [lease(Stage.INIT, SLEEPY, spec)]
    process = await start(Stage.INIT, gateway, tmp_path)
    await sandbox_running(process)
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 10) == 0
    print(f"gone after {time.monotonic() - asked:.1f} s")
    (completion,) = gateway.completions
    assert completion["result"] == {"kind": "handed_back", "reason": "the worker stops"}
    assert list((tmp_path / "work" / "sandboxes" / "owners").iterdir()) == []


async def sandbox_running(process: asyncio.subprocess.Process) -> None:
    """Wait until the set-up command sleeps inside the sandbox."""
    async with asyncio.timeout(60):
        while not any("sleep" in p.name() for p in descendants(process.pid)):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def descendants(pid: int) -> list[psutil.Process]:
    return psutil.Process(pid).children(recursive=True)


@pytest.mark.sandbox
async def test_missing_image_is_reported_with_its_remedy(
    gateway: Gateway, tmp_path: Path, spec: RolloutSpec
) -> None:
    sandbox = spec.sandbox.model_copy(update={"image": "no-such-image"})
    gateway.waiting = [lease(Stage.INIT, SLEEPY, spec.model_copy(update={"sandbox": sandbox}))]
    process = await start(Stage.INIT, gateway, tmp_path)
    try:
        await asyncio.wait_for(gateway.completed.wait(), 30)
    finally:
        process.terminate()
        await process.wait()
    failure = gateway.completions[0]["result"]["failure"]
    assert (failure["reason"], failure["retryable"]) == ("ImageNotFound", False)
    assert "no-such-image.sif" in failure["message"]
