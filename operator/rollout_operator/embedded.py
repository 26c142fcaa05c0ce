"""The embedded cluster and the gateway, both behind the gateway's HTTP interface."""

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from pydantic import BaseModel, TypeAdapter

from rollout_client.errors import GatewayError, NotFound, ServerError, TooManyRequests
from rollout_client.errors import Unavailable as NoAnswer
from rollout_client.transport import Transport
from rollout_crds.pod import Pod
from rollout_crds.resources import BY_KIND, Changes, Event, Resource
from rollout_crds.wire import JobState, JobSubmission, LLMPoolRegistration
from rollout_operator.errors import Missing, Refused, Unavailable
from rollout_operator.observed import GatewayJob
from rollout_operator.plan import Owner, Status
from rollout_operator.ports import Batch

_POLL_SECONDS = 20
_SLACK_SECONDS = 10.0
_SUBMIT_TIMEOUT_SECONDS = 300.0
"""The gateway reads the whole task source before it answers."""
_KINDS = "RolloutJob,RolloutPool,LLMPool,Pod"
_GATEWAY_JOB = TypeAdapter(GatewayJob)

P = ParamSpec("P")
T = TypeVar("T")


def _translated(
    call: Callable[P, Coroutine[Any, Any, T]],
) -> Callable[P, Coroutine[Any, Any, T]]:
    """Turn the client's errors into those of the ports."""

    @wraps(call)
    async def wrapper(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await call(*args, **kwargs)
        except (NoAnswer, ServerError, TooManyRequests) as error:
            raise Unavailable(str(error)) from error
        except NotFound as error:
            raise Missing(str(error)) from error
        except GatewayError as error:
            raise Refused(str(error), error.reason) from error

    return wrapper


def _dump(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class EmbeddedCluster:
    """Resources in the gateway's store, pods on the local node."""

    def __init__(self, transport: Transport, kinds: str = _KINDS) -> None:
        self._transport = transport
        self._kinds = kinds

    async def watch(self) -> AsyncIterator[Batch]:
        """All objects of our kinds, then their changes, until the connection breaks."""
        since = "0"
        while True:
            changes = await self._changes(since)
            if since == "0" or changes.changed:
                yield Batch(tuple(changes.changed), complete=since == "0")
            since = changes.resource_version

    @_translated
    async def _changes(self, since: str) -> Changes:
        response = await self._transport.request(
            "GET",
            "/v1/changes",
            params={"since": since, "kinds": self._kinds, "timeoutSeconds": _POLL_SECONDS},
            timeout_seconds=_POLL_SECONDS + _SLACK_SECONDS,
        )
        return Changes.model_validate_json(response.content)

    @_translated
    async def create_pod(self, pod: Pod) -> Pod:
        """Create a pod; one of that name that is the same already is fine."""
        body = json.dumps(_dump(pod)).encode()
        response = await self._put(_path(pod), pod.metadata.namespace, body)
        return Pod.model_validate_json(response)

    @_translated
    async def delete(self, target: Resource) -> None:
        """Ask for the deletion of an object; one that is gone already is fine."""
        params = {"namespace": target.metadata.namespace}
        try:
            await self._transport.request("DELETE", _path(target), params=params)
        except NotFound:
            return

    @_translated
    async def write_status(self, target: Owner | Pod, status: Status | BaseModel) -> Resource:
        """Replace the status of an object."""
        body = json.dumps({"status": _dump(status)}).encode()
        path = f"{_path(target)}/status"
        response = await self._put(path, target.metadata.namespace, body)
        return BY_KIND[target.kind].model.model_validate_json(response)

    @_translated
    async def write_finalizers(self, target: Owner, finalizers: tuple[str, ...]) -> Resource:
        """Replace the finalizers of an object."""
        body = json.dumps({"finalizers": list(finalizers)}).encode()
        path = f"{_path(target)}/finalizers"
        response = await self._put(path, target.metadata.namespace, body)
        return BY_KIND[target.kind].model.model_validate_json(response)

    @_translated
    async def post_event(self, event: Event) -> None:
        """Record an event for people."""
        body = json.dumps(_dump(event)).encode()
        await self._transport.request("POST", "/v1/events", body=body)

    async def _put(self, path: str, namespace: str, body: bytes) -> bytes:
        response = await self._transport.request(
            "PUT", path, params={"namespace": namespace}, body=body
        )
        content: bytes = response.content
        return content


def _path(target: Resource) -> str:
    return f"/v1/{BY_KIND[target.kind].plural}/{target.metadata.name}"


class HttpGateway:
    """The gateway's internal interface."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    @_translated
    async def job(self, uid: str) -> GatewayJob | None:
        """What it knows about a job; None when that is nothing."""
        try:
            response = await self._transport.request("GET", f"/internal/v1/jobs/{uid}")
        except NotFound:
            return None
        return _GATEWAY_JOB.validate_json(response.content)

    @_translated
    async def submit(self, submission: JobSubmission) -> None:
        """Hand a job over; the same one again changes nothing."""
        await self._transport.request(
            "PUT",
            f"/internal/v1/jobs/{submission.uid}",
            body=submission.model_dump_json(by_alias=True, exclude_none=True).encode(),
            timeout_seconds=_SUBMIT_TIMEOUT_SECONDS,
        )

    @_translated
    async def set_state(self, uid: str, state: JobState) -> None:
        """Suspend, resume, prioritise or cancel a job."""
        await self._transport.request(
            "PUT", f"/internal/v1/jobs/{uid}/state", body=state.model_dump_json().encode()
        )

    @_translated
    async def purge(self, uid: str) -> None:
        """Remove a job with its rows; an unknown one is fine."""
        await self._delete(f"/internal/v1/jobs/{uid}")

    @_translated
    async def register(self, registration: LLMPoolRegistration) -> None:
        """State a pool's engines, replacing those stated before."""
        await self._transport.request(
            "PUT",
            f"/internal/v1/llmpools/{registration.namespace}/{registration.name}",
            body=registration.model_dump_json(by_alias=True, exclude_none=True).encode(),
        )

    @_translated
    async def unregister(self, namespace: str, name: str) -> None:
        """Take a pool's engines away; an unknown pool is fine."""
        await self._delete(f"/internal/v1/llmpools/{namespace}/{name}")

    async def _delete(self, path: str) -> None:
        try:
            await self._transport.request("DELETE", path)
        except NotFound:
            return
