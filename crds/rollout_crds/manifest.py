"""Manifests: YAML files of resources, read with every error at once.

A file is accepted whole or refused whole, so that applying it leaves nothing half-done. Each error
is one line: `FILE:LINE: KIND/NAME: FIELD: what is wrong; remedy`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from rollout_crds.base import API_VERSION
from rollout_crds.resources import BY_KIND, Resource
from rollout_crds.taskfile import TaskLineError, read_tasks
from rollout_crds.validation import (
    FieldError,
    describe,
    field_errors,
    field_path,
    not_one_of,
    unknown_field,
    validate,
)
from rollout_crds.yaml_source import MAX_BYTES, Document, Loc, YamlError, read_yaml

__all__ = [
    "APPLICABLE_KINDS",
    "FieldError",
    "ManifestError",
    "Problem",
    "TaskLineError",
    "field_errors",
    "load_manifests",
    "read_tasks",
    "validate",
]

APPLICABLE_KINDS = ("RolloutJob", "RolloutPool", "LLMPool")
"""Kinds that people write; Pods are made by the operator."""

METADATA_FIELDS = (
    *("name", "namespace", "labels", "annotations", "finalizers", "ownerReferences"),
    *("uid", "generation", "resourceVersion", "creationTimestamp", "deletionTimestamp"),
    *("deletionGracePeriodSeconds", "generateName", "managedFields", "selfLink"),
)


@dataclass(frozen=True)
class Problem:
    """One error of a manifest."""

    source: str
    line: int
    object: str
    """`KIND/NAME` as far as known, else empty."""
    field: str
    """Path of the field, empty for the whole object."""
    message: str

    def __str__(self) -> str:
        where = (f"{self.source}:{self.line}", self.object, self.field, self.message)
        return ": ".join(part for part in where if part)


class ManifestError(ValueError):
    """A manifest cannot be used; `problems` has everything that is wrong with it."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = tuple(sorted(problems, key=lambda problem: problem.line))
        super().__init__("\n".join(map(str, self.problems)))


def load_manifests(source: Path | str, source_name: str | None = None) -> list[Resource]:
    """Read all resources of a manifest.

    Args:
        source: A file to read, or the text itself when it is a `str`.
        source_name: What errors call it; unset: the path, or `manifest` for text.

    Raises:
        ManifestError: The file cannot be read, or at least one resource in it is invalid.
    """
    name = source_name or (str(source) if isinstance(source, Path) else "manifest")
    try:
        documents = read_yaml(_text(source, name))
    except YamlError as error:
        raise ManifestError([_problem(name, error)]) from error
    if not documents:
        raise ManifestError([Problem(name, 1, "", "", "has no resource in it")])
    loaded = [_load(document, name) for document in documents]
    resources = [resource for resource, _ in loaded if resource is not None]
    problems = [problem for _, found in loaded for problem in found]
    problems += _duplicates(documents, name)
    if problems:
        raise ManifestError(problems)
    return resources


def _text(source: Path | str, name: str) -> str:
    if isinstance(source, str):
        return source
    try:
        with source.open("rb") as file:
            return file.read(MAX_BYTES + 1).decode()
    except UnicodeDecodeError as error:
        problem = Problem(name, 1, "", "", "is not text in UTF-8; save it as UTF-8")
        raise ManifestError([problem]) from error
    except OSError as error:
        problem = Problem(name, 1, "", "", f"cannot be read: {error.strerror}; check the path")
        raise ManifestError([problem]) from error


def _load(document: Document, source: str) -> tuple[Resource | None, list[Problem]]:
    found = [FieldError(field_path(e.loc), e.message, e.loc) for e in document.errors]
    lines = {id(field): error.line for field, error in zip(found, document.errors, strict=True)}
    resource, invalid = _validated(document.data)
    label = _label(document.data)
    problems = [
        Problem(source, lines.get(id(e)) or document.line(e.loc), label, e.field, e.message)
        for e in [*found, *invalid]
    ]
    return resource, problems


def _validated(data: Any) -> tuple[Resource | None, list[FieldError]]:
    errors = list(_header_errors(data))
    if errors:
        return None, errors
    model = BY_KIND[data["kind"]].model
    errors = [*_metadata_errors(data.get("metadata")), *_not_json(data, ())]
    try:
        return validate(model, data), errors
    except ValidationError as error:
        return None, [*errors, *field_errors(error, model)]


def _header_errors(data: Any) -> Iterator[FieldError]:
    """Check what decides which model to validate with."""
    if not isinstance(data, dict):
        yield FieldError("", f"must be a resource (a mapping), got {describe(data)}")
        return
    for field, valid in (("apiVersion", (API_VERSION,)), ("kind", APPLICABLE_KINDS)):
        if data.get(field) is None:
            yield FieldError(field, f"must be set to {' or '.join(valid)}", (field,))
        elif data[field] not in valid:
            yield FieldError(field, not_one_of(data[field], valid), (field,))


def _not_json(data: Any, loc: Loc) -> Iterator[FieldError]:
    """Numbers that YAML has and JSON has not."""
    if isinstance(data, float) and not math.isfinite(data):
        yield FieldError(field_path(loc), f"must be a finite number, got {data}", loc)
    elif isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        for key, value in items:
            yield from _not_json(value, (*loc, key))


def _metadata_errors(metadata: Any) -> Iterator[FieldError]:
    """Unknown metadata: the model keeps it, because Kubernetes adds fields to it."""
    for name in metadata if isinstance(metadata, dict) else ():
        if name not in METADATA_FIELDS:
            message = unknown_field(name, METADATA_FIELDS)
            yield FieldError(f"metadata.{name}", message, ("metadata", name))


def _duplicates(documents: list[Document], source: str) -> Iterator[Problem]:
    first: dict[tuple[str, str], int] = {}
    for document in documents:
        label, line = _label(document.data), document.line(())
        if "/" not in label:
            continue
        key = (label, str(document.data["metadata"].get("namespace", "default")))
        if key in first:
            message = f"must be defined once; it is also on line {first[key]}"
            yield Problem(source, line, label, "", message)
        first.setdefault(key, line)


def _label(data: Any) -> str:
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        return ""
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return f"{data['kind']}/{name}" if isinstance(name, str) else str(data["kind"])


def _problem(source: str, error: YamlError) -> Problem:
    return Problem(source, error.line, "", field_path(error.loc), error.message)
