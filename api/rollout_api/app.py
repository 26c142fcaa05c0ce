"""The application: services wired to one database, and the routers over them."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

from fastapi import FastAPI

from rollout_api import problems
from rollout_api.body_limit import BodyLimit
from rollout_api.routes import changes, health, job_data, job_intake, llm_pools, resources, workers
from rollout_api.services.gateway import Gateway
from rollout_api.services.hub import Hub
from rollout_api.services.jobs import Jobs
from rollout_api.services.live import LiveProgress
from rollout_api.services.llm_pools import LLMPools
from rollout_api.services.queue import Queue
from rollout_api.services.resources import Resources
from rollout_api.services.scheduler import Scheduler
from rollout_api.settings import Settings
from rollout_api.store.database import Database

ROUTERS = (
    workers.router,  # first, for they are called most, and routes are matched in order
    health.router,
    changes.router,
    job_data.router,
    resources.router,
    job_intake.router,
    llm_pools.router,
)


def create_app(
    settings: Settings, database: Database, clock: Callable[[], float] = time.time
) -> FastAPI:
    """Build the application over an open database; its shutdown leaves the database open.

    Args:
        settings: Limits and times.
        database: Where everything is kept.
        clock: Unix time in seconds.
    """
    gateway = _wire(settings, database, clock)
    app = FastAPI(
        title="rollout-operator gateway",
        summary="Resources, leases, and token trajectories",
        lifespan=_lifespan,
        responses=problems.RESPONSES,
    )
    app.state.gateway = gateway
    app.add_middleware(BodyLimit, most_bytes=settings.most_body_bytes)
    problems.install(app)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _wire(settings: Settings, database: Database, clock: Callable[[], float]) -> Gateway:
    hub = Hub()
    live = LiveProgress(clock)
    database.on_commit(hub.publish)
    return Gateway(
        hub=hub,
        database=database,
        resources=Resources(database, hub, clock),
        jobs=Jobs(database, hub, live, clock),
        queue=Queue(database, hub, live, clock, settings.lease_seconds),
        llm_pools=LLMPools(database),
        scheduler=Scheduler(database, hub, live, clock, settings.lease_seconds),
    )


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    gateway: Gateway = app.state.gateway
    tasks = [
        asyncio.create_task(gateway.scheduler.run(), name="scheduler"),
        asyncio.create_task(gateway.jobs.resume_cancelling(), name="resume-cancelling"),
    ]
    yield
    gateway.hub.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
