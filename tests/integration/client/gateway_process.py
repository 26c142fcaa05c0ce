"""A real gateway process, and a stand-in for the operator and the workers that feed it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rollout_client.cli.rest import Gateway
from rollout_client.worker import WorkerClient
from rollout_crds.result import Boundary, Failure, Stage
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.trajectory import ModelCall, SamplingParams, Trajectory
from rollout_crds.wire import (
    Completion,
    EvalDone,
    InitDone,
    Lease,
    LeaseRequest,
    PreparedEnvironment,
    RunArtifact,
    RunDone,
    StageFailed,
    StageResult,
    WorkerHello,
)

LLM_POOL = {
    "apiVersion": "rollout-operator.dev/v1alpha1",
    "kind": "LLMPool",
    "metadata": {"name": "m"},
    "spec": {"model": "m", "tokenizer": "m", "endpoints": [{"url": "http://127.0.0.1:9"}]},
}


class GatewayProcess:
    """A gateway on a Unix socket that can be killed and started again."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.url = f"unix://{state}/run/gateway.sock"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        command = [sys.executable, "-m", "rollout_api", "--state-dir", str(self.state)]
        with (self.state / "gateway.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        Gateway(self.url, patience_seconds=20).request("GET", "/readyz")

    def kill(self) -> None:
        """End it as hard as possible."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def submit(self, job: RolloutJob) -> None:
        """Hand an applied job to the queue, with a healthy backend, as the operator does."""
        gateway = Gateway(self.url)
        metadata = job.metadata
        spec = job.spec.model_dump(mode="json", by_alias=True)
        body = {"uid": metadata.uid, "name": metadata.name, "namespace": metadata.namespace}
        gateway.request("PUT", f"/internal/v1/jobs/{metadata.uid}", body={**body, "spec": spec})
        backend = {"name": "b0", "url": "http://127.0.0.1:9", "healthy": True}
        pool = {
            "namespace": "default",
            "name": "m",
            "spec": LLM_POOL["spec"],
            "backends": [backend],
        }
        gateway.request("PUT", "/internal/v1/llmpools/default/m", body=pool)

    def set_conditions(self, plural: str, name: str, *conditions: dict[str, str]) -> None:
        """Write conditions as the operator does."""
        full = [
            {"message": "", "lastTransitionTime": "2026-01-01T00:00:00Z", **c} for c in conditions
        ]
        path = f"/v1/{plural}/{name}/status"
        body = {"status": {"conditions": full}}
        Gateway(self.url).put(path, {"namespace": "default"}, body)


def job(name: str = "demo", tasks: int = 2, samples: int = 2) -> RolloutJob:
    """A job with inline tasks."""
    spec: dict[str, Any] = {
        "tasks": {"inline": [{"id": f"t{i}", "instruction": "x"} for i in range(tasks)]},
        "handler": "math",
        "samplesPerTask": samples,
        "llm": {"poolRef": {"name": "m"}},
        "sandbox": {"image": "i"},
    }
    return RolloutJob.model_validate({"metadata": {"name": name}, "spec": spec})


class PlayedWorker:
    """Does the work of all three stages without doing any: each rollout gets reward 1."""

    def __init__(self, url: str, job_uid: str, *, failing: str = "") -> None:
        self._client = WorkerClient(url)
        self._uid = job_uid
        self._failing = failing
        """Task whose RUN always fails."""

    async def work(self, stage: Stage, count: int) -> int:
        """Lease and complete up to `count` units of a stage; returns how many there were."""
        name = f"played-{stage}"
        await self._client.hello(WorkerHello(worker=name, incarnation="1"))
        request = LeaseRequest(
            worker=name,
            incarnation="1",
            stage=stage,
            job_uid=self._uid,
            capacity=count,
            wait_seconds=0.1,
        )
        leases = await self._client.lease(request)
        for lease in leases:
            done = Completion(
                worker=name,
                incarnation="1",
                work_id=lease.work_id,
                attempt=lease.attempt,
                result=self._result(lease),
            )
            assert await self._client.complete(done)
        return len(leases)

    async def finish(self, rollouts: int) -> None:
        """Bring so many further rollouts to their end."""
        while await self.work(Stage.INIT, 100):
            pass
        await self.work(Stage.RUN, rollouts)
        await self.work(Stage.EVAL, rollouts)

    def _result(self, lease: Lease) -> StageResult:
        if lease.stage is Stage.INIT:
            return InitDone(environment=PreparedEnvironment(image="i"))
        if lease.stage is Stage.EVAL:
            return EvalDone(reward=1.0)
        if lease.task.id == self._failing:
            failure = Failure(
                stage=Stage.RUN,
                boundary=Boundary.MODEL,
                reason="ModelUnavailable",
                message="no answer",
                attempt=lease.attempt,
                retryable=False,
            )
            return StageFailed(failure=failure)
        return RunDone(trajectory=trajectory(), artifact=RunArtifact(answer="5"))

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()


def trajectory() -> Trajectory:
    """Two calls of which the second extends the first."""
    sampling = SamplingParams(temperature=1.0, top_p=1.0, top_k=-1, max_tokens=8)
    calls = [
        ModelCall(
            index=index,
            request_id=f"r{index}",
            backend="b0",
            prompt_token_ids=prompt,
            output_token_ids=output,
            output_logprobs=(-0.5,) * len(output),
            logprobs_mode="processed_logprobs",
            finish_reason="stop",
            sampling=sampling,
            started_at=time.time(),
            duration_seconds=0.1,
        )
        for index, (prompt, output) in enumerate([((1, 2), (3,)), ((1, 2, 3, 4), (5, 6))])
    ]
    return Trajectory(model="m", calls=tuple(calls), messages=(), stop_reason="finished")
