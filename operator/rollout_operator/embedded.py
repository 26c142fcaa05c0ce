"""The embedded cluster and the gateway, both behind the gateway's HTTP interface."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from pydantic import BaseModel

from rollout_client import errors as client_errors
from rollout_client.transport import Transport
from rollout_crds.control import GatewayJob, JobState, JobSubmission, LLMPoolRegistration
from rollout_crds.llmpool import LLMPool
from rollout_crds.pod import Pod, PodStatus
from rollout_crds.resources import BY_KIND, Changes, Event, Resource
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.rolloutpool import RolloutPool
from rollout_operator.errors import Conflict, Missing, Refused, Unavailable
from rollout_operator.plan import Owner, Status
from rollout_operator.ports import Batch

_BEGINNING = "0"
"""Version of a store in which nothing has ever been; asked for what is newer, it lists all."""
_MUST_BE_NEW = {"If-Match": _BEGINNING}
_EMPTY_SECONDS = 0.3
"""Pause while there is nothing, for which the gateway does not hold the request."""
_POLL_SECONDS = 20
_REQUEST_SECONDS = 30.0
_SUBMIT_SECONDS = 300.0
"""The gateway reads the whole task source before it answers."""
_TRY_LATER = (
    client_errors.Unavailable,
    client_errors.ServerError,
    client_errors.TooManyRequests,
)
OPERATOR_KINDS: tuple[type[Resource], ...] = (RolloutJob, RolloutPool, LLMPool, Pod)


class _Http:
    """Requests whose failures are those of the ports."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = _REQUEST_SECONDS,
    ) -> bytes:
        encoded = None if body is None else json.dumps(body).encode()
        try:
            response = await self._transport.request(
                method,
                path,
                params=params,
                body=encoded,
                headers=headers,
                timeout_seconds=seconds,
            )
        except _TRY_LATER as error:
            raise Unavailable(str(error)) from error
        except client_errors.NotFound as error:
            raise Missing(str(error)) from error
        except client_errors.Conflict as error:
            raise Conflict(str(error), error.reason) from error
        except client_errors.GatewayError as error:
            raise Refused(str(error), error.reason) from error
        content: bytes = response.content
        return content

    async def delete(self, path: str, params: Mapping[str, Any] | None = None) -> None:
        """Delete something that may be gone already."""
        try:
            await self.request("DELETE", path, params=params)
        except Missing:
            return


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class EmbeddedCluster:
    """Resources in the gateway's store, pods on the local node.

    Args:
        transport: To the gateway.
        kinds: The kinds to watch.
    """

    def __init__(
        self, transport: Transport, kinds: tuple[type[Resource], ...] = OPERATOR_KINDS
    ) -> None:
        self._http = _Http(transport)
        self._kinds = ",".join(kind.__name__ for kind in kinds)

    async def watch(self) -> AsyncIterator[Batch]:
        """All objects of our kinds, then their changes, until the connection breaks."""
        since = _BEGINNING
        while True:
            changes = await self._changes(since)
            if since == _BEGINNING or changes.changed:
                yield Batch(tuple(changes.changed), complete=since == _BEGINNING)
            since = changes.resource_version
            if since == _BEGINNING:
                await asyncio.sleep(_EMPTY_SECONDS)

    async def _changes(self, since: str) -> Changes:
        content = await self._http.request(
            "GET",
            "/v1/changes",
            params={"since": since, "kinds": self._kinds, "timeoutSeconds": _POLL_SECONDS},
            seconds=_POLL_SECONDS + _REQUEST_SECONDS,
        )
        return Changes.model_validate_json(content)

    async def create_pod(self, pod: Pod) -> Pod:
        """Create a pod; one of that name with the same owner is fine."""
        params = {"namespace": pod.metadata.namespace}
        try:
            content = await self._http.request(
                "PUT", _path(pod), params=params, body=_dump(pod), headers=_MUST_BE_NEW
            )
        except Conflict as error:
            existing = Pod.model_validate_json(
                await self._http.request("GET", _path(pod), params=params)
            )
            if existing.metadata.owner_references != pod.metadata.owner_references:
                msg = f"pod `{pod.metadata.name}` exists and belongs to another owner: delete it"
                raise Refused(msg) from error
            return existing
        return Pod.model_validate_json(content)

    async def delete(self, target: Resource) -> None:
        """Ask for the deletion of an object; one that is gone already is fine."""
        await self._http.delete(_path(target), {"namespace": target.metadata.namespace})

    async def write_status(self, target: Resource, status: Status | PodStatus) -> Resource:
        """Replace the status of an object."""
        content = await self._put(target, "/status", {"status": _dump(status)})
        return BY_KIND[target.kind].model.model_validate_json(content)

    async def write_finalizers(self, target: Owner, finalizers: tuple[str, ...]) -> Resource:
        """Replace the finalizers of an object."""
        content = await self._put(target, "/finalizers", {"finalizers": list(finalizers)})
        return BY_KIND[target.kind].model.model_validate_json(content)

    async def post_event(self, event: Event) -> None:
        """Record an event for people."""
        await self._http.request("POST", "/v1/events", body=_dump(event))

    async def _put(self, target: Resource, part: str, body: object) -> bytes:
        params = {"namespace": target.metadata.namespace}
        return await self._http.request("PUT", f"{_path(target)}{part}", params=params, body=body)


def _path(target: Resource) -> str:
    return f"/v1/{BY_KIND[target.kind].plural}/{target.metadata.name}"


class HttpGateway:
    """The gateway's internal interface."""

    def __init__(self, transport: Transport) -> None:
        self._http = _Http(transport)

    async def job(self, uid: str) -> GatewayJob | None:
        """What it knows about a job; None when that is nothing."""
        try:
            content = await self._http.request("GET", f"/internal/v1/jobs/{uid}")
        except Missing:
            return None
        return GatewayJob.model_validate_json(content)

    async def submit(self, submission: JobSubmission) -> None:
        """Hand a job over; the same one again changes nothing."""
        path = f"/internal/v1/jobs/{submission.uid}"
        await self._http.request("PUT", path, body=_dump(submission), seconds=_SUBMIT_SECONDS)

    async def set_state(self, uid: str, state: JobState) -> None:
        """Suspend, resume, prioritise or cancel a job."""
        await self._http.request("PUT", f"/internal/v1/jobs/{uid}/state", body=_dump(state))

    async def purge(self, uid: str) -> None:
        """Remove a job with its rows; an unknown one is fine."""
        await self._http.delete(f"/internal/v1/jobs/{uid}")

    async def register(self, registration: LLMPoolRegistration) -> None:
        """State a pool's engines, replacing those stated before."""
        path = f"/internal/v1/llmpools/{registration.namespace}/{registration.name}"
        await self._http.request("PUT", path, body=_dump(registration))

    async def unregister(self, namespace: str, name: str) -> None:
        """Take a pool's engines away; an unknown pool is fine."""
        await self._http.delete(f"/internal/v1/llmpools/{namespace}/{name}")
