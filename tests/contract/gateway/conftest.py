import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest
from fastapi import FastAPI

from rollout_api.app import create_app
from rollout_api.settings import Settings
from rollout_api.store.database import Database
from rollout_api.store.outcomes import DUE
from rollout_api.store.writer import Wake
from tests.contract.gateway.samples import Worker, register_llm


class Clock:
    """Real time plus what a test adds."""

    def __init__(self) -> None:
        self.offset = 0.0

    def __call__(self) -> float:
        return time.time() + self.offset


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings() -> Settings:
    return Settings(lease_seconds=15.0, most_body_bytes=1_000_000)


@pytest.fixture
async def app(tmp_path: Path, clock: Clock, settings: Settings) -> AsyncIterator[FastAPI]:
    database = Database(tmp_path / "gateway.db", durable=False)
    try:
        app = create_app(settings, database, clock)
        async with app.router.lifespan_context(app):
            yield app
    finally:
        database.close()


@pytest.fixture
async def http(app: FastAPI) -> AsyncIterator[httpx2.AsyncClient]:
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx2.AsyncClient(transport=transport, base_url="http://gateway") as client:
        yield client


@pytest.fixture
async def worker(http: httpx2.AsyncClient) -> Worker:
    await register_llm(http)
    return Worker(http)


@pytest.fixture
def advance(app: FastAPI, clock: Clock) -> Callable[[float], None]:
    """Let time pass; what is due then is done by the gateway's own task."""

    def run(seconds: float) -> None:
        clock.offset += seconds
        app.state.gateway.hub.publish([Wake(DUE)])

    return run
