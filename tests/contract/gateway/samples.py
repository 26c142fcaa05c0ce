"""Jobs, results and a worker that speaks the protocol, for the tests of the gateway."""

import json
from typing import Any

import httpx2

from rollout_crds.wire import Lease

Json = dict[str, Any]


def spec(**changes: Any) -> Json:
    grading = {"answer": "2", "artifacts": ["out"]}
    tasks = [{"id": "t1", "instruction": "add", "grading": grading, "metadata": {"k": None}}]
    return {
        "tasks": {"inline": tasks},
        "handler": "math",
        "llm": {"poolRef": {"name": "llm"}},
        "sandbox": {"image": "base"},
        "retry": {"maxAttempts": 3, "backoffSeconds": 0},
        **changes,
    }


def tasks(count: int) -> Json:
    return {"inline": [{"id": f"t{n}", "instruction": f"question {n}"} for n in range(count)]}


def trajectory(tokens: int = 3, **changes: Any) -> Json:
    call = {
        "index": 0,
        "request_id": "r1",
        "backend": "b1",
        "prompt_token_ids": list(range(1, tokens + 2)),
        "output_token_ids": list(range(tokens)),
        "output_logprobs": [-0.5] * tokens,
        "logprobs_mode": "processed_logprobs",
        "finish_reason": "stop",
        "sampling": {"temperature": 1.0, "top_p": 1.0, "top_k": -1, "max_tokens": 16},
        "started_at": 1.0,
        "duration_seconds": 0.5,
    }
    whole = {
        "model": "m",
        "calls": [call],
        "messages": [{"role": "user", "content": "hé"}],
        "stop_reason": "finished",
    }
    return {**whole, **changes}


def failed(stage: str, attempt: int = 1, *, retryable: bool = True, **changes: Any) -> Json:
    failure = {
        "stage": stage,
        "boundary": "sandbox",
        "reason": "SandboxDied",
        "message": "gone",
        "attempt": attempt,
        "retryable": retryable,
    }
    return {"kind": "failed", "failure": failure, **changes}


INIT_DONE: Json = {"kind": "init", "environment": {"image": "base"}}
RUN_DONE: Json = {"kind": "run", "trajectory": trajectory(), "artifact": {"answer": "2"}}
EVAL_DONE: Json = {
    "kind": "eval",
    "reward": 1.0,
    "reward_components": {"correct": 1.0},
    "details": {"output": "1 passed"},
}
SUCCESS = {"init": INIT_DONE, "run": RUN_DONE, "eval": EVAL_DONE}


class Worker:
    """A stage worker without stages."""

    def __init__(
        self, http: httpx2.AsyncClient, name: str = "w", incarnation: str = "1", job: str = "u1"
    ) -> None:
        self.http = http
        self.identity = {"worker": name, "incarnation": incarnation}
        self.job = job

    async def lease(
        self, stage: str, capacity: int = 10, wait: float = 0.0, **scope: str
    ) -> list[Lease]:
        body = {
            **self.identity,
            "stage": stage,
            "capacity": capacity,
            "wait_seconds": wait,
            **(scope or {"job_uid": self.job}),
        }
        response = await self.http.post("/internal/v1/leases", json=body, timeout=60)
        assert response.status_code == 200, response.text
        return [Lease.model_validate_json(json.dumps(item)) for item in response.json()["leases"]]

    async def complete(self, lease: Lease, result: Json, **changes: Any) -> httpx2.Response:
        body = {
            **self.identity,
            "work_id": lease.work_id,
            "attempt": lease.attempt,
            "result": result,
            **changes,
        }
        return await self.http.post("/internal/v1/completions", json=body)

    async def do(self, stage: str, result: Json | None = None) -> list[Lease]:
        """Lease all there is of a stage and complete it."""
        leases = await self.lease(stage)
        for lease in leases:
            response = await self.complete(lease, result or SUCCESS[stage])
            assert response.status_code == 204, response.text
        return leases

    async def heartbeat(self, *leases: Lease, **counters: int) -> list[Json]:
        items = [{"work_id": x.work_id, "attempt": x.attempt, **counters} for x in leases]
        response = await self.http.post(
            "/internal/v1/heartbeats", json={**self.identity, "leases": items}
        )
        assert response.status_code == 200, response.text
        revoked: list[Json] = response.json()["revoked"]
        return revoked

    async def hello(self) -> None:
        response = await self.http.post("/internal/v1/workers", json=self.identity)
        assert response.status_code == 204, response.text


async def submit(
    http: httpx2.AsyncClient, uid: str = "u1", name: str = "j", **changes: Any
) -> httpx2.Response:
    body = {"uid": uid, "name": name, "namespace": "default", "spec": spec(**changes)}
    return await http.put(f"/internal/v1/jobs/{uid}", json=body, timeout=60)


async def register_llm(http: httpx2.AsyncClient, *backends: str, healthy: bool = True) -> None:
    body = {
        "namespace": "default",
        "name": "llm",
        "spec": {"model": "m", "tokenizer": "/t", "endpoints": [{"url": "http://x"}]},
        "backends": [
            {"name": name, "url": f"http://{name}", "healthy": healthy, "max_model_len": 4096}
            for name in backends or ("b1",)
        ],
    }
    response = await http.put("/internal/v1/llmpools/default/llm", json=body)
    assert response.status_code == 204, response.text


async def records(
    http: httpx2.AsyncClient, name: str = "j", **query: Any
) -> tuple[list[Json], Json]:
    response = await http.get(f"/v1/rolloutjobs/{name}/trajectories", params=query, timeout=60)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("application/jsonl")
    lines = [json.loads(line) for line in response.text.splitlines()]
    return lines[:-1], lines[-1]


async def progress(http: httpx2.AsyncClient, name: str = "j") -> Json:
    found: Json = (await http.get(f"/v1/rolloutjobs/{name}/progress")).json()
    return found


async def set_state(http: httpx2.AsyncClient, uid: str = "u1", **state: Any) -> None:
    response = await http.put(f"/internal/v1/jobs/{uid}/state", json=state)
    assert response.status_code == 204, response.text
