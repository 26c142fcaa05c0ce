"""Resources in the embedded store: one row each, versioned by one global counter.

A removed resource leaves its row without a body, so that those who watch hear of the removal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, delete, insert, select, update

from rollout_api.core.resources import Kept, Removed, owner_uids
from rollout_api.store.events import forget_events
from rollout_api.store.schema import counters, resource_owners, resources
from rollout_api.store.writer import Transaction
from rollout_crds.resources import BY_KIND, Resource, ResourceKind

CHANGED = ("resources",)


@dataclass(frozen=True, slots=True)
class Change:
    """The latest state of a resource, as JSON; no body when it was removed."""

    kind: str
    namespace: str
    name: str
    body: str | None


@dataclass(frozen=True, slots=True)
class ResourceList:
    """Resources and the version at which they were read."""

    resource_version: int
    changes: list[Change]


def find_resource(
    connection: Connection, kind: ResourceKind, namespace: str, name: str
) -> Resource | None:
    """Look up a resource."""
    statement = select(resources.c.body).where(*_key(kind.kind, namespace, name))
    body = connection.execute(statement).scalar()
    return kind.model.model_validate_json(body) if body is not None else None


def list_resources(
    connection: Connection, kind: ResourceKind, namespace: str | None
) -> ResourceList:
    """All resources of a kind by name, in one namespace or in all."""
    conditions = [resources.c.kind == kind.kind, resources.c.body.is_not(None)]
    if namespace is not None:
        conditions.append(resources.c.namespace == namespace)
    order = (resources.c.namespace, resources.c.name)
    return _read(connection, select(*_CHANGE).where(*conditions).order_by(*order))


def list_changes(connection: Connection, since: int, kinds: Sequence[str]) -> ResourceList:
    """What changed after version `since`, oldest first; everything that exists for 0.

    A version that this database has never given (it was replaced) counts as 0.
    """
    if since == 0 or since > current_version(connection):
        condition: ColumnElement[bool] = resources.c.body.is_not(None)
    else:
        condition = resources.c.resource_version > since
    statement = select(*_CHANGE).where(condition, resources.c.kind.in_(kinds))
    return _read(connection, statement.order_by(resources.c.resource_version))


def current_version(connection: Connection) -> int:
    """The version of the last change."""
    statement = select(counters.c.value).where(counters.c.name == "resource_version")
    return int(connection.execute(statement).scalar_one())


def save(tx: Transaction, outcome: Kept | Removed) -> Resource:
    """Store what a rule decided; removal takes the dependants along, one level a call."""
    if isinstance(outcome, Removed):
        _store(tx, outcome.resource, removed=True)
        return outcome.resource
    if not outcome.changed:
        return outcome.resource
    return _store(tx, outcome.resource, removed=False)


def any_exists(connection: Connection, uids: Sequence[str]) -> bool:
    """Whether one of these objects exists."""
    statement = select(resources.c.uid).where(
        resources.c.uid.in_(uids), resources.c.body.is_not(None)
    )
    return connection.execute(statement.limit(1)).first() is not None


def dependants(connection: Connection, owner_uid: str) -> list[Resource]:
    """The resources that name an owner."""
    o = resource_owners.c
    statement = select(o.kind, o.namespace, o.name).where(o.owner_uid == owner_uid)
    found = [
        find_resource(connection, BY_KIND[kind], namespace, name)
        for kind, namespace, name in connection.execute(statement).all()
    ]
    return [resource for resource in found if resource is not None]


_CHANGE = (resources.c.kind, resources.c.namespace, resources.c.name, resources.c.body)


def _read(connection: Connection, statement: Select[*tuple[Any, ...]]) -> ResourceList:
    rows = connection.execute(statement)
    return ResourceList(current_version(connection), [Change(*row) for row in rows])


def _store(tx: Transaction, resource: Resource, *, removed: bool) -> Resource:
    version = _next_version(tx)
    metadata = resource.metadata.model_copy(update={"resource_version": str(version)})
    resource = resource.model_copy(update={"metadata": metadata})
    key = _key(resource.kind, metadata.namespace, metadata.name)
    values = {
        "uid": metadata.uid,
        "resource_version": version,
        "body": None if removed else resource.model_dump_json(by_alias=True),
    }
    if tx.connection.execute(update(resources).where(*key), values).rowcount == 0:
        identity = {
            "kind": resource.kind,
            "namespace": metadata.namespace,
            "name": metadata.name,
        }
        tx.connection.execute(insert(resources), {**identity, **values})
    if removed:
        forget_events(tx, resource.kind, metadata.namespace, metadata.name)
    _store_owners(tx, resource, [] if removed else owner_uids(metadata))
    tx.wake(CHANGED)
    return resource


def _store_owners(tx: Transaction, resource: Resource, uids: Sequence[str]) -> None:
    o = resource_owners.c
    identity = {
        "kind": resource.kind,
        "namespace": resource.metadata.namespace,
        "name": resource.metadata.name,
    }
    tx.connection.execute(
        delete(resource_owners).where(
            o.kind == identity["kind"],
            o.namespace == identity["namespace"],
            o.name == identity["name"],
        )
    )
    if uids:
        rows = [{"owner_uid": uid, **identity} for uid in uids]
        tx.connection.execute(insert(resource_owners), rows)


def _next_version(tx: Transaction) -> int:
    statement = (
        update(counters)
        .where(counters.c.name == "resource_version")
        .values(value=counters.c.value + 1)
        .returning(counters.c.value)
    )
    return int(tx.connection.execute(statement).scalar_one())


def _key(kind: str, namespace: str, name: str) -> tuple[ColumnElement[bool], ...]:
    c = resources.c
    return c.kind == kind, c.namespace == namespace, c.name == name
