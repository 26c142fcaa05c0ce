"""What stage workers call: hello, leases, heartbeats, completions."""

from fastapi import APIRouter, Request, Response

from rollout_api.core.errors import InvalidInputError
from rollout_api.routes.dependencies import GatewayDependency
from rollout_api.routes.raw_json import array, json_response
from rollout_crds.validation import FieldError
from rollout_crds.wire import (
    Completion,
    Heartbeat,
    HeartbeatReply,
    Lease,
    LeaseRequest,
    WorkerHello,
)

router = APIRouter(prefix="/internal/v1", tags=["workers"])

_COMPLETION_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": Completion.model_json_schema()}},
    }
}


@router.post("/workers", status_code=204)
async def hello(gateway: GatewayDependency, message: WorkerHello) -> None:
    """Announce a worker process; what its predecessors held is queued again."""
    await gateway.queue.hello(message)


@router.post("/leases", response_model=dict[str, list[Lease]])
async def lease(gateway: GatewayDependency, request: Request, wanted: LeaseRequest) -> Response:
    """Long poll for work."""
    if (wanted.job_uid is None) == (wanted.pool is None):
        message = "must set exactly one of `job_uid` and `pool`"
        raise InvalidInputError(message, [FieldError("job_uid", message)])
    leases = await gateway.queue.lease(wanted, request.is_disconnected)
    return json_response(f'{{"leases":{array(leases)}}}')


@router.post("/heartbeats")
async def heartbeat(gateway: GatewayDependency, message: Heartbeat) -> HeartbeatReply:
    """Renew leases; the answer names those to drop."""
    return await gateway.queue.heartbeat(message)


@router.post("/completions", status_code=204, openapi_extra=_COMPLETION_BODY)
async def complete(gateway: GatewayDependency, request: Request) -> Response:
    """End a lease; the same completion again is answered the same way."""
    await gateway.queue.complete(await request.body())
    return Response(status_code=204)
