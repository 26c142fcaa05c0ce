"""Pods of the embedded cluster, behind the gateway's HTTP interface."""

import asyncio
import json
from collections.abc import AsyncIterator

from rollout_client.errors import Conflict, NotFound
from rollout_client.transport import Transport
from rollout_crds.pod import Pod, PodStatus
from rollout_crds.resources import Changes, Event
from rollout_slurm.ports import Batch

_BEGINNING = "0"
"""Version of a store in which nothing has ever been; asked for what is newer, it lists all."""
_EMPTY_SECONDS = 0.3
"""Pause while there is nothing, for which the gateway does not hold the request."""
_POLL_SECONDS = 20
_REQUEST_SECONDS = 30.0


class EmbeddedPods:
    """The pods in a gateway's store.

    Args:
        transport: To the gateway.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def watch(self) -> AsyncIterator[Batch]:
        """All pods, then their changes, until the connection breaks."""
        since = _BEGINNING
        while True:
            response = await self._transport.request(
                "GET",
                "/v1/changes",
                params={"since": since, "kinds": "Pod", "timeoutSeconds": _POLL_SECONDS},
                timeout_seconds=_POLL_SECONDS + _REQUEST_SECONDS,
            )
            changes = Changes.model_validate_json(response.content)
            yield Batch(tuple(changes.changed), complete=since == _BEGINNING)
            since = changes.resource_version
            if since == _BEGINNING:
                await asyncio.sleep(_EMPTY_SECONDS)

    async def write_status(self, pod: Pod, status: PodStatus) -> Pod | None:
        """Replace a pod's status; None when the pod is gone."""
        body = {"status": status.model_dump(mode="json", by_alias=True, exclude_none=True)}
        try:
            response = await self._transport.request(
                "PUT",
                f"/v1/pods/{pod.metadata.name}/status",
                params={"namespace": pod.metadata.namespace},
                body=json.dumps(body).encode(),
            )
        except (NotFound, Conflict):
            return None
        return Pod.model_validate_json(response.content)

    async def post_event(self, event: Event) -> None:
        """Record an event for people."""
        body = event.model_dump_json(by_alias=True, exclude_none=True).encode()
        await self._transport.request("POST", "/v1/events", body=body)
