"""Every error is problem+json and tells its reason."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI

from tests.contract.gateway.samples import EVAL_DONE, Worker, submit


@pytest.mark.parametrize(
    ("method", "path", "status", "reason"),
    [
        ("GET", "/nothing/here", 404, "NotFound"),
        ("GET", "/v1/gadgets", 404, "NotFound"),
        ("POST", "/healthz", 405, "MethodNotAllowed"),
        ("GET", "/v1/changes?since=x", 422, "InvalidRequest"),
        ("POST", "/internal/v1/leases", 422, "InvalidRequest"),
        ("GET", "/v1/rolloutjobs/none/progress", 404, "NotFound"),
        ("PUT", "/internal/v1/jobs/none/state", 422, "InvalidRequest"),
        ("GET", "/v1/rolloutjobs?namespace=A/B", 422, "InvalidRequest"),
    ],
)
async def test_errors_are_problems(
    http: httpx2.AsyncClient, method: str, path: str, status: int, reason: str
) -> None:
    answer = await http.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["status"], body["reason"]) == (status, reason)
    assert body["instance"] == path.partition("?")[0]


async def test_a_defect_shows_no_traceback(app: FastAPI, http: httpx2.AsyncClient) -> None:
    async def broken(*_: Any) -> None:
        msg = "secret detail"
        raise RuntimeError(msg)

    app.state.gateway.queue.hello = broken
    answer = await http.post("/internal/v1/workers", json={"worker": "w", "incarnation": "1"})
    assert answer.status_code == 500
    assert answer.json()["reason"] == "InternalError"
    assert "secret" not in answer.text


async def test_a_lease_request_names_one_scope(http: httpx2.AsyncClient) -> None:
    request = {"worker": "w", "incarnation": "1", "stage": "run", "capacity": 1}
    for scope in ({}, {"job_uid": "u", "pool": "p"}):
        answer = await http.post("/internal/v1/leases", json={**request, **scope})
        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"] == "job_uid"


async def test_large_bodies_are_refused_with_and_without_a_length(
    http: httpx2.AsyncClient,
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(20):
            yield b"x" * 100_000

    for path in ("/internal/v1/completions", "/v1/events"):
        for content in (b"x" * 1_000_001, chunks()):
            answer = await http.post(path, content=content)
            assert answer.status_code == 413
            assert answer.json()["reason"] == "BodyTooLarge"


async def test_numbers_that_are_not_finite_are_refused(worker: Worker) -> None:
    await submit(worker.http)
    await worker.do("init")
    await worker.do("run")
    (lease,) = await worker.lease("eval")
    completion = {
        **worker.identity,
        "work_id": lease.work_id,
        "attempt": 1,
        "result": {"kind": "eval", "reward": float("nan")},
    }
    text = json.dumps(completion)
    answer = await worker.http.post("/internal/v1/completions", content=text)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "result.reward"
    assert (await worker.complete(lease, EVAL_DONE)).status_code == 204


async def test_the_openapi_document_can_be_built(http: httpx2.AsyncClient) -> None:
    document = (await http.get("/openapi.json")).json()
    assert "/internal/v1/completions" in document["paths"]
    assert "/v1/{plural}/{name}" in document["paths"]
