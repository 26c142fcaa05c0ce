"""The embedded store of resources: what users and the operator do with them, and watching them."""

import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from pydantic import ValidationError

from rollout_api.core import resources as rules
from rollout_api.core.errors import ConflictError, InvalidSpecError, NotFoundError
from rollout_api.core.resources import Kept, Removed
from rollout_api.services.hub import Hub
from rollout_api.store import events, resources
from rollout_api.store.database import Database
from rollout_api.store.resources import ResourceList
from rollout_api.store.writer import Transaction
from rollout_crds.reasons import ConditionType
from rollout_crds.resources import BY_KIND, Event, Resource, ResourceKind
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.validation import FieldError, field_errors, validate


class Resources:
    """Create, change, delete, list and watch resources."""

    def __init__(self, database: Database, hub: Hub, clock: Callable[[], float]) -> None:
        self._database = database
        self._hub = hub
        self._clock = clock

    async def put(
        self, kind: ResourceKind, submitted: Resource, expected_version: str | None
    ) -> tuple[Resource, bool]:
        """Create or update; says whether it was created.

        Raises:
            ConflictError: It is being deleted, or has another version than expected.
            InvalidSpecError: A fixed field differs.
        """
        return await self._database.write(
            lambda tx: self._put(tx, kind, submitted, expected_version)
        )

    async def get(self, kind: ResourceKind, namespace: str, name: str) -> Resource:
        """Look up a resource.

        Raises:
            NotFoundError: It does not exist.
        """
        found = await self._database.read(
            lambda connection: resources.find_resource(connection, kind, namespace, name)
        )
        if found is None:
            raise _missing(kind, namespace, name)
        return found

    async def list_kind(self, kind: ResourceKind, namespace: str | None) -> ResourceList:
        """List a kind in one namespace, or in all."""
        return await self._database.read(
            lambda connection: resources.list_resources(connection, kind, namespace)
        )

    async def set_status(
        self, kind: ResourceKind, namespace: str, name: str, status: dict[str, Any]
    ) -> Resource:
        """Replace what was observed of a resource.

        Raises:
            NotFoundError: It does not exist.
            InvalidSpecError: The status does not fit the kind.
        """
        parsed = _parse_status(kind, status)
        return await self._change(
            kind, namespace, name, lambda stored: rules.set_status(stored, parsed)
        )

    async def set_finalizers(
        self, kind: ResourceKind, namespace: str, name: str, finalizers: Sequence[str]
    ) -> Resource:
        """Replace the finalizers of a resource; the last one of a deleted object frees it.

        Raises:
            NotFoundError: It does not exist.
        """
        return await self._change(
            kind, namespace, name, lambda stored: rules.set_finalizers(stored, finalizers)
        )

    async def delete(self, kind: ResourceKind, namespace: str, name: str) -> tuple[Resource, bool]:
        """Delete a resource and its dependants; says whether it is gone already.

        Raises:
            NotFoundError: It does not exist.
        """

        def run(tx: Transaction) -> tuple[Resource, bool]:
            stored = _existing(tx, kind, namespace, name)
            outcome = rules.delete(stored, self._now())
            return self._save(tx, outcome), isinstance(outcome, Removed)

        return await self._database.write(run)

    async def changes(self, since: int, kinds: Sequence[str], seconds: float) -> ResourceList:
        """Wait for changes after version `since`; with 0 list everything at once."""
        deadline = monotonic() + seconds
        with self._hub.subscribe(resources.CHANGED) as subscription:
            found = await self._read_changes(since, kinds)
            while not found.changes and since != 0:
                if not await subscription.wait(deadline - monotonic()):
                    break
                subscription.take()
                found = await self._read_changes(since, kinds)
        return found

    async def is_settled(self, namespace: str, name: str) -> bool:
        """Whether the operator has closed a RolloutJob: `Succeeded` is True or False."""
        job = await self.get(BY_KIND["RolloutJob"], namespace, name)
        conditions = job.status.conditions if isinstance(job, RolloutJob) else []
        return any(c.type == ConditionType.SUCCEEDED and c.status != "Unknown" for c in conditions)

    async def record_event(self, event: Event) -> None:
        """Keep or count an event."""
        await self._database.write(lambda tx: events.record_event(tx, event, self._clock()))

    async def list_events(
        self, kind: str | None, name: str | None, namespace: str | None
    ) -> list[Event]:
        """List events; filters may be left out."""
        return await self._database.read(
            lambda connection: events.list_events(connection, kind, name, namespace)
        )

    async def _read_changes(self, since: int, kinds: Sequence[str]) -> ResourceList:
        return await self._database.read(
            lambda connection: resources.list_changes(connection, since, kinds)
        )

    async def _change(
        self,
        kind: ResourceKind,
        namespace: str,
        name: str,
        rule: Callable[[Resource], Kept | Removed],
    ) -> Resource:
        def run(tx: Transaction) -> Resource:
            return self._save(tx, rule(_existing(tx, kind, namespace, name)))

        return await self._database.write(run)

    def _put(
        self,
        tx: Transaction,
        kind: ResourceKind,
        submitted: Resource,
        expected_version: str | None,
    ) -> tuple[Resource, bool]:
        meta = submitted.metadata
        stored = resources.find_resource(tx.connection, kind, meta.namespace, meta.name)
        try:
            rules.require_version(stored, expected_version)
            if stored is None:
                _require_owner(tx, submitted)
                created = rules.create(submitted, str(uuid.uuid4()), self._now())
                return resources.save(tx, created), True
            return resources.save(tx, rules.update(kind, stored, submitted)), False
        except rules.ResourceRuleError as error:
            raise _explained(error, kind, meta.name) from error

    def _save(self, tx: Transaction, outcome: Kept | Removed) -> Resource:
        """Store a change; what a removed object owned goes with it."""
        saved = resources.save(tx, outcome)
        if isinstance(outcome, Removed):
            for dependant in resources.dependants(tx.connection, saved.metadata.uid):
                self._save(tx, rules.delete(dependant, self._now()))
        return saved

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _existing(tx: Transaction, kind: ResourceKind, namespace: str, name: str) -> Resource:
    stored = resources.find_resource(tx.connection, kind, namespace, name)
    if stored is None:
        raise _missing(kind, namespace, name)
    return stored


def _require_owner(tx: Transaction, submitted: Resource) -> None:
    """Refuse an object whose owners are gone: nothing would ever delete it."""
    owners = rules.owner_uids(submitted.metadata)
    if owners and not resources.any_exists(tx.connection, owners):
        msg = f"{submitted.kind} {submitted.metadata.name!r}: its owner does not exist any more"
        raise ConflictError(msg)


def _missing(kind: ResourceKind, namespace: str, name: str) -> NotFoundError:
    return NotFoundError(f"{kind.kind} {name!r} does not exist in namespace {namespace!r}")


def _explained(
    error: rules.ResourceRuleError, kind: ResourceKind, name: str
) -> ConflictError | InvalidSpecError:
    what = f"{kind.kind} {name!r}"
    if isinstance(error, rules.ImmutableFieldsError):
        message = "can not change after creation: delete the object first, or use another name"
        fields = [FieldError(f"spec.{field}", message) for field in error.fields]
        return InvalidSpecError(f"{what}: {', '.join(f.field for f in fields)} {message}", fields)
    if isinstance(error, rules.BeingDeletedError):
        return ConflictError(f"{what} is being deleted: apply it again when it is gone")
    return ConflictError(f"{what} has resourceVersion {error}: read it again, then change it")


def _parse_status(kind: ResourceKind, status: dict[str, Any]) -> Any:
    model: Any = kind.model.model_fields["status"].annotation
    try:
        return validate(model, status)
    except ValidationError as error:
        wrong = field_errors(error, model)
        fields = [FieldError(f"status.{each.field}", each.message) for each in wrong]
        msg = f"invalid status of {kind.kind}"
        raise InvalidSpecError(msg, fields) from error
