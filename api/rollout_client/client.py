"""The typed client of the gateway: resources in and out, and the records of a job as a stream."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self, TypeVar

from pydantic import BaseModel

from rollout_client.errors import NotFound
from rollout_client.session import GatewaySession, Query
from rollout_client.waiting import Deadline, is_reached
from rollout_crds.llmpool import LLMPool
from rollout_crds.locations import default_url
from rollout_crds.pod import Pod
from rollout_crds.progress import JobProgress
from rollout_crds.resources import BY_KIND, Changes, Event
from rollout_crds.result import RolloutRecord, RolloutSummary, StreamEnd
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.rolloutpool import RolloutPool

ResourceT = TypeVar("ResourceT", bound=RolloutJob | RolloutPool | LLMPool | Pod)

LONG_POLL_SECONDS = 20.0
PAGE_SIZE = 100


@dataclass(frozen=True)
class RecordPage:
    """Some records of a job, in the order in which the rollouts finished."""

    lines: tuple[str, ...]
    """The records as the gateway sent them: JSON, one line each, without line ends."""
    cursor: int
    """Pass it to read what comes after."""
    complete: bool
    """The job has finished and nothing comes after."""

    @cached_property
    def records(self) -> tuple[RolloutRecord, ...]:
        """The lines as models."""
        return tuple(RolloutRecord.model_validate_json(line) for line in self.lines)


class AsyncRolloutClient(AbstractAsyncContextManager["AsyncRolloutClient"]):
    """Asynchronous client of the gateway; close it, or use it as a context manager.

    Args:
        url: `unix:///path.sock` or `http(s)://host:port`; default `$ROLLOUT_SERVER`, else the
            gateway that `rolloutctl up` runs on this machine.
        patience_seconds: How long to go on trying while the gateway restarts.
        timeout_seconds: Longest silence within one attempt.

    Raises:
        ValueError: The URL has another form.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        patience_seconds: float = 30.0,
        timeout_seconds: float = 30.0,
    ) -> None:
        self._session = GatewaySession(
            url or default_url(os.environ),
            patience_seconds=patience_seconds,
            timeout_seconds=timeout_seconds,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._session.aclose()

    async def apply(self, resource: ResourceT) -> ResourceT:
        """Create the object, or change its spec, labels and annotations to these.

        Raises:
            Invalid: A field is wrong, or may not change after creation.
            Conflict: The object is being deleted.
        """
        model: type[ResourceT] = type(resource)
        body = resource.model_dump(
            mode="json", by_alias=True, exclude_none=True, exclude={"status"}
        )
        path = _path(model, resource.metadata.name)
        query = {"namespace": resource.metadata.namespace}
        return _parsed(model, await self._session.request("PUT", path, query=query, body=body))

    async def get(
        self, model: type[ResourceT], name: str, *, namespace: str = "default"
    ) -> ResourceT:
        """Read an object.

        Raises:
            NotFound: There is none of that name.
        """
        content = await self._session.request(
            "GET", _path(model, name), query={"namespace": namespace}
        )
        return _parsed(model, content)

    async def list(
        self, model: type[ResourceT], *, namespace: str | None = None
    ) -> tuple[ResourceT, ...]:
        """Read all objects of a kind, of one namespace or of all."""
        query = {"namespace": namespace} if namespace else {}
        content = await self._session.request("GET", _path(model), query=query)
        return _items(model, content)

    async def delete(
        self, model: type[ResourceT], name: str, *, namespace: str = "default"
    ) -> None:
        """Ask for an object's deletion; `wait_deleted` waits for its end.

        Raises:
            NotFound: There is none of that name.
        """
        await self._session.request("DELETE", _path(model, name), query={"namespace": namespace})

    async def changes(
        self,
        since: str = "0",
        *,
        kinds: tuple[type[BaseModel], ...] = (),
        timeout_seconds: float = LONG_POLL_SECONDS,
    ) -> Changes:
        """What has changed since a resource version; holds until there is something.

        Args:
            since: `resource_version` of the previous answer; `0` for everything that exists.
            kinds: Only these kinds; empty for all.
            timeout_seconds: When to answer although nothing has changed.
        """
        query: dict[str, str | float] = {"since": since, "timeoutSeconds": timeout_seconds}
        if kinds:
            query["kinds"] = ",".join(kind.__name__ for kind in kinds)
        content = await self._session.request(
            "GET", "/v1/changes", query=query, hold_seconds=timeout_seconds
        )
        return Changes.model_validate_json(content)

    async def wait(
        self,
        model: type[ResourceT],
        name: str,
        condition: str,
        *,
        namespace: str = "default",
        timeout_seconds: float | None = None,
    ) -> ResourceT:
        """Wait until a condition of an object is `True`.

        Raises:
            ConditionFailed: `Succeeded` cannot come any more: it or `Accepted` is `False`.
            NotFound: There is no such object, or it was deleted meanwhile.
            WaitTimeout: Not within `timeout_seconds`.
        """
        deadline = Deadline(timeout_seconds, f"{model.__name__}/{name}: condition {condition}")
        current = await self.get(model, name, namespace=namespace)
        while not is_reached(getattr(current.status, "conditions", ()), condition):
            await self._next_change(model, current.metadata.resource_version, deadline)
            current = await self.get(model, name, namespace=namespace)
        return current

    async def wait_deleted(
        self,
        model: type[ResourceT],
        name: str,
        *,
        namespace: str = "default",
        timeout_seconds: float | None = None,
    ) -> None:
        """Wait until there is no object of that name.

        Raises:
            WaitTimeout: Not within `timeout_seconds`.
        """
        deadline = Deadline(timeout_seconds, f"{model.__name__}/{name}: deletion")
        while True:
            try:
                current = await self.get(model, name, namespace=namespace)
            except NotFound:
                return
            await self._next_change(model, current.metadata.resource_version, deadline)

    async def progress(self, job: str, *, namespace: str = "default") -> JobProgress:
        """How far a job is, up to date (its status is a little behind)."""
        content = await self._session.request(
            "GET", f"/v1/rolloutjobs/{job}/progress", query={"namespace": namespace}
        )
        return JobProgress.model_validate_json(content)

    async def rollouts(self, job: str, *, namespace: str = "default") -> tuple[RolloutSummary, ...]:
        """All rollouts of a job, finished or not, without their trajectories."""
        content = await self._session.request(
            "GET", f"/v1/rolloutjobs/{job}/rollouts", query={"namespace": namespace}
        )
        return _items(RolloutSummary, content)

    async def events(
        self, model: type[ResourceT], name: str, *, namespace: str = "default"
    ) -> tuple[Event, ...]:
        """What has happened to an object."""
        query = {"kind": model.__name__, "name": name, "namespace": namespace}
        return _items(Event, await self._session.request("GET", "/v1/events", query=query))

    async def record_page(
        self,
        job: str,
        *,
        namespace: str = "default",
        cursor: int = 0,
        limit: int = PAGE_SIZE,
        wait_seconds: float = 0.0,
    ) -> RecordPage:
        """Read the next records of a job.

        Args:
            job: Name of the job.
            namespace: Its namespace.
            cursor: `cursor` of the previous page; 0 for the start.
            limit: Most records to read.
            wait_seconds: How long to wait for a record when there is none.
        """
        query: Query = {
            "namespace": namespace,
            "cursor": cursor,
            "limit": limit,
            "wait_seconds": wait_seconds,
        }
        content = await self._session.request(
            "GET",
            f"/v1/rolloutjobs/{job}/trajectories",
            query=query,
            hold_seconds=wait_seconds,
        )
        *lines, last = content.decode().strip().split("\n")
        end = StreamEnd.model_validate_json(last)
        return RecordPage(tuple(lines), end.cursor, end.complete)

    async def trajectories(
        self,
        job: str,
        *,
        namespace: str = "default",
        cursor: int = 0,
        follow: bool = True,
        page_size: int = PAGE_SIZE,
    ) -> AsyncIterator[RolloutRecord]:
        """The finished rollouts of a job, in the order in which they finished.

        Args:
            job: Name of the job.
            namespace: Its namespace.
            cursor: Where to start; take it from `record_page`. 0 for the first record.
            follow: Wait for further records until the job has finished.
            page_size: Records of one request.
        """
        while True:
            page = await self.record_page(
                job,
                namespace=namespace,
                cursor=cursor,
                limit=page_size,
                wait_seconds=LONG_POLL_SECONDS if follow else 0.0,
            )
            for record in page.records:
                yield record
            cursor = page.cursor
            if len(page.lines) < page_size and (page.complete or not follow):
                return

    async def _next_change(self, model: type[ResourceT], since: str, deadline: Deadline) -> None:
        seconds = deadline.remaining(LONG_POLL_SECONDS)
        await self.changes(since, kinds=(model,), timeout_seconds=seconds)


def _path(model: type[BaseModel], name: str | None = None) -> str:
    collection = f"/v1/{BY_KIND[model.__name__].plural}"
    return collection if name is None else f"{collection}/{name}"


ItemT = TypeVar("ItemT", bound=BaseModel)


def _parsed(model: type[ItemT], content: bytes) -> ItemT:
    return model.model_validate_json(content)


def _items(model: type[ItemT], content: bytes) -> tuple[ItemT, ...]:
    return tuple(model.model_validate(item) for item in json.loads(content)["items"])
