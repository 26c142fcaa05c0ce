"""Watching resources, and the events that tell people what happened to them."""

import json
from typing import Annotated

from fastapi import APIRouter, Query, Response

from rollout_api.core.errors import InvalidInputError
from rollout_api.routes.dependencies import GatewayDependency
from rollout_api.routes.raw_json import array, json_response
from rollout_api.store.resources import Change
from rollout_crds.resources import BY_KIND, Event
from rollout_crds.validation import FieldError

router = APIRouter(prefix="/v1", tags=["watch"])


@router.get("/changes")
async def changes(
    gateway: GatewayDependency,
    since: Annotated[int, Query(ge=0)] = 0,
    kinds: str = "",
    timeout_seconds: Annotated[float, Query(alias="timeoutSeconds", ge=0, le=60)] = 20,
) -> Response:
    """Long poll for what is newer than a resource version; 0 lists everything at once."""
    found = await gateway.resources.changes(since, _kinds(kinds), timeout_seconds)
    changed = array(_changed_object(change) for change in found.changes)
    return json_response(f'{{"resourceVersion":"{found.resource_version}","changed":{changed}}}')


@router.post("/events", status_code=204)
async def post_event(gateway: GatewayDependency, event: Event) -> None:
    """Record an event; one like an earlier one is counted."""
    await gateway.resources.record_event(event)


@router.get("/events")
async def get_events(
    gateway: GatewayDependency,
    kind: str | None = None,
    name: str | None = None,
    namespace: str | None = None,
) -> dict[str, list[Event]]:
    """The latest events, oldest first."""
    return {"items": await gateway.resources.list_events(kind, name, namespace)}


def _kinds(text: str) -> list[str]:
    names = [name for name in text.split(",") if name] or list(BY_KIND)
    unknown = [name for name in names if name not in BY_KIND]
    if unknown:
        message = f"unknown kinds {', '.join(unknown)}; there are {', '.join(BY_KIND)}"
        raise InvalidInputError(message, [FieldError("kinds", message)])
    return names


def _changed_object(change: Change) -> str:
    identity = {"kind": change.kind, "namespace": change.namespace, "name": change.name}
    return f'{json.dumps(identity)[:-1]},"object":{change.body or "null"}}}'
