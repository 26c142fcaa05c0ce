"""What may be done to a resource, and what it is afterwards.

The rules follow Kubernetes: a generation that counts changes of the spec, fields that are fixed
at creation, finalizers that hold back a deletion, owners that take their dependants with them.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rollout_crds.meta import ObjectMeta
from rollout_crds.resources import Resource, ResourceKind


class ResourceRuleError(Exception):
    """A change that the rules refuse."""


class BeingDeletedError(ResourceRuleError):
    """The object is being deleted."""


class StaleVersionError(ResourceRuleError):
    """The object is newer than the version that the caller has seen."""


class ImmutableFieldsError(ResourceRuleError):
    """The change touches fields that are fixed at creation."""

    def __init__(self, fields: list[str]) -> None:
        super().__init__(", ".join(fields))
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Removed:
    """The object is gone."""

    resource: Resource


@dataclass(frozen=True, slots=True)
class Kept:
    """The object as it is now."""

    resource: Resource
    changed: bool


def create(submitted: Resource, uid: str, now: datetime) -> Kept:
    """Create an object: identity is given, whatever the submitted metadata says of it."""
    metadata = submitted.metadata.model_copy(
        update={
            "uid": uid,
            "generation": 1,
            "creation_timestamp": now,
            "deletion_timestamp": None,
        }
    )
    return Kept(submitted.model_copy(update={"metadata": metadata}), changed=True)


def update(kind: ResourceKind, stored: Resource, submitted: Resource) -> Kept:
    """Apply a user's new version of an object.

    Finalizers stay as they are, for users do not know them; so do owners when none are named.

    Raises:
        BeingDeletedError: The object is being deleted.
        ImmutableFieldsError: A fixed field of the spec differs.
    """
    if stored.metadata.deletion_timestamp is not None:
        raise BeingDeletedError
    changed_fields = _changed_spec_fields(stored, submitted)
    refused = [field for field in changed_fields if _is_fixed(kind, field)]
    if refused:
        raise ImmutableFieldsError(refused)
    metadata = stored.metadata.model_copy(
        update={
            "labels": submitted.metadata.labels,
            "annotations": submitted.metadata.annotations,
            "owner_references": submitted.metadata.owner_references
            or stored.metadata.owner_references,
            "generation": stored.metadata.generation + bool(changed_fields),
        }
    )
    return _kept(stored, {"metadata": metadata, "spec": submitted.spec})


def require_version(stored: Resource | None, expected: str | None) -> None:
    """Refuse a change by a caller who has seen another version.

    Raises:
        StaleVersionError: `expected` is given and is not the stored version.
    """
    current = stored.metadata.resource_version if stored is not None else "0"
    if expected is not None and expected != current:
        raise StaleVersionError(current)


def set_status(stored: Resource, status: Any) -> Kept:
    """Replace what was observed."""
    return _kept(stored, {"status": status})


def set_finalizers(stored: Resource, finalizers: Iterable[str]) -> Kept | Removed:
    """Replace the finalizers; without the last one a deletion goes through."""
    metadata = stored.metadata.model_copy(update={"finalizers": list(finalizers)})
    kept = _kept(stored, {"metadata": metadata})
    if metadata.deletion_timestamp is not None and not metadata.finalizers:
        return Removed(kept.resource)
    return kept


def delete(stored: Resource, now: datetime) -> Kept | Removed:
    """Remove an object, or mark it while finalizers hold it back."""
    if not stored.metadata.finalizers:
        return Removed(stored)
    if stored.metadata.deletion_timestamp is not None:
        return Kept(stored, changed=False)
    metadata = stored.metadata.model_copy(update={"deletion_timestamp": now})
    return _kept(stored, {"metadata": metadata})


def owner_uids(metadata: ObjectMeta) -> list[str]:
    """The objects whose removal removes this one."""
    return sorted({reference.uid for reference in metadata.owner_references})


def _kept(stored: Resource, changes: dict[str, Any]) -> Kept:
    resource = stored.model_copy(update=changes)
    return Kept(resource, changed=resource != stored)


def _changed_spec_fields(stored: Resource, submitted: Resource) -> list[str]:
    old, new = (r.spec.model_dump(mode="json", by_alias=True) for r in (stored, submitted))
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _is_fixed(kind: ResourceKind, field: str) -> bool:
    return kind.mutable_spec_fields is not None and field not in kind.mutable_spec_fields
