"""What trainers and people read of a RolloutJob: progress, rollouts, records."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from rollout_api.core.errors import NotFoundError
from rollout_api.routes.dependencies import GatewayDependency, Namespace
from rollout_api.services.gateway import Gateway
from rollout_crds.progress import JobProgress
from rollout_crds.resources import BY_KIND
from rollout_crds.result import RolloutSummary, StreamEnd

router = APIRouter(prefix="/v1/rolloutjobs/{name}", tags=["results"])


@router.get("/progress")
async def progress(
    gateway: GatewayDependency, name: str, namespace: Namespace = "default"
) -> JobProgress:
    """Counters of a job."""
    return await gateway.jobs.progress(await _job_uid(gateway, namespace, name))


@router.get("/rollouts")
async def rollouts(
    gateway: GatewayDependency, name: str, namespace: Namespace = "default"
) -> dict[str, list[RolloutSummary]]:
    """The rollouts of a job, without their trajectories."""
    return {"items": await gateway.jobs.rollouts(await _job_uid(gateway, namespace, name))}


@router.get("/trajectories")
async def trajectories(
    gateway: GatewayDependency,
    name: str,
    namespace: Namespace = "default",
    cursor: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    wait_seconds: Annotated[float, Query(ge=0, le=60)] = 0,
) -> Response:
    """Records in order of completion as JSON lines, the last of which tells how to go on."""
    uid = await _job_uid(gateway, namespace, name)
    found = await gateway.jobs.records(uid, cursor, limit, wait_seconds)
    complete = found.complete or (
        not found.page.lines and await _ended_without_rollouts(gateway, uid, namespace, name)
    )
    end = StreamEnd(cursor=found.page.cursor, complete=complete)
    text = "\n".join([*found.page.lines, end.model_dump_json(), ""])
    return Response(text, media_type="application/jsonl")


async def _job_uid(gateway: Gateway, namespace: str, name: str) -> str:
    """The uid by the resource, or (where resources are elsewhere) by what was submitted."""
    try:
        job = await gateway.resources.get(BY_KIND["RolloutJob"], namespace, name)
    except NotFoundError:
        uid = await gateway.jobs.uid_of(namespace, name)
        if uid is None:
            raise
        return uid
    return job.metadata.uid


async def _ended_without_rollouts(gateway: Gateway, uid: str, namespace: str, name: str) -> bool:
    if await gateway.jobs.is_known(uid):
        return False
    return await gateway.resources.is_settled(namespace, name)
