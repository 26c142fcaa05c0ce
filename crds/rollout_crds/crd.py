"""CustomResourceDefinitions, built from the models."""

from dataclasses import dataclass
from typing import Any

from rollout_crds.base import GROUP, VERSION
from rollout_crds.resources import KINDS, ResourceKind
from rollout_crds.structural import Schema, structural_schema, without_defaults

CATEGORY = "rollout-operator"


@dataclass(frozen=True)
class Column:
    """A column of the table that `kubectl get` prints."""

    name: str
    json_path: str
    type: str = "string"
    wide: bool = False
    """Only with `-o wide`."""


def _condition(condition: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{condition}")].{field}'


def _summary(condition: str) -> tuple[Column, Column]:
    return (
        Column(condition, _condition(condition, "status")),
        Column("Reason", _condition(condition, "reason")),
    )


_AGE = Column("Age", ".metadata.creationTimestamp", "date")

COLUMNS: dict[str, tuple[Column, ...]] = {
    "RolloutJob": (
        *_summary("Succeeded"),
        Column("Finished", ".status.progress.finished", "integer"),
        Column("Rollouts", ".status.progress.rollouts", "integer"),
        Column("Scored", ".status.progress.outcomes.scored", "integer"),
        Column("Infra-Errors", ".status.progress.outcomes.infraError", "integer", wide=True),
        Column("LLM-Pool", ".spec.llm.poolRef.name", wide=True),
        Column("Message", _condition("Succeeded", "message"), wide=True),
        _AGE,
    ),
    "RolloutPool": (
        *_summary("Ready"),
        Column("Running", ".status.readyReplicas", "integer"),
        Column("Wanted", ".status.replicas", "integer"),
        _AGE,
    ),
    "LLMPool": (
        *_summary("Ready"),
        Column("Model", ".spec.model"),
        Column("Healthy", ".status.healthyBackends", "integer"),
        Column("Message", _condition("Ready", "message"), wide=True),
        _AGE,
    ),
}

SELECTABLE_FIELDS: dict[str, tuple[str, ...]] = {
    "RolloutJob": (".spec.handler", ".spec.llm.poolRef.name"),
    "LLMPool": (".spec.model",),
}


def definitions() -> dict[str, dict[str, Any]]:
    """The CustomResourceDefinition of each of our kinds, by plural name."""
    return {kind.plural: definition(kind) for kind in KINDS if kind.kind in COLUMNS}


def definition(kind: ResourceKind) -> dict[str, Any]:
    """The CustomResourceDefinition of one kind."""
    selectable = [{"jsonPath": path} for path in SELECTABLE_FIELDS.get(kind.kind, ())]
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in COLUMNS[kind.kind]],
        "schema": {"openAPIV3Schema": _root(kind)},
        **({"selectableFields": selectable} if selectable else {}),
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.kind.lower(),
                "shortNames": [kind.short_name],
                "categories": [CATEGORY],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    priority = {"priority": 1} if column.wide else {}
    return {"name": column.name, "type": column.type, "jsonPath": column.json_path, **priority}


def _root(kind: ResourceKind) -> Schema:
    """The schema of the object; of metadata only the name may be restricted in one."""
    root = structural_schema(kind.model)
    properties = root["properties"]
    name = properties["metadata"]["properties"]["name"]
    properties["apiVersion"] = {"type": "string", "description": "Group and version of the schema."}
    properties["kind"] = {"type": "string", "description": "Kind of the object."}
    properties["metadata"] = {"type": "object", "properties": {"name": name}}
    properties["spec"] = _with_immutability(properties["spec"], kind)
    properties["status"] = without_defaults(properties["status"])
    del root["required"]
    return root if "default" in properties["spec"] else {**root, "required": ["spec"]}


def _with_immutability(spec: Schema, kind: ResourceKind) -> Schema:
    if kind.mutable_spec_fields is None:
        return spec
    fixed = sorted(set(spec["properties"]) - kind.mutable_spec_fields)
    rules = [_immutable(field, spec["properties"][field], spec, kind.kind) for field in fixed]
    return {**spec, "x-kubernetes-validations": [*spec.get("x-kubernetes-validations", []), *rules]}


def _immutable(field: str, schema: Schema, spec: Schema, kind: str) -> dict[str, Any]:
    always_there = field in spec.get("required", ()) or "default" in schema
    same = f"self.{field} == oldSelf.{field}"
    if not always_there:
        same = f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || {same})"
    return {
        "rule": same,
        "message": f"must not change after creation; create another {kind}",
        "fieldPath": f".{field}",
    }
