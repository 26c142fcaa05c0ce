"""What Kubernetes checks beyond types, declared beside the models and checked here as well.

Each marker adds the `x-kubernetes-*` key that makes the API server check a rule; the list markers
also check it in Python, and the models repeat the CEL rules as validators.
"""

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.alias_generators import to_snake
from pydantic.config import JsonDict
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True)
class Cel:
    """A rule in the Common Expression Language over `self`, and what to tell who breaks it."""

    rule: str
    message: str


def rules(*cel: Cel) -> JsonDict:
    """The `json_schema_extra` of a model whose objects must obey `cel`."""
    return {"x-kubernetes-validations": [{"rule": c.rule, "message": c.message} for c in cel]}


@dataclass(frozen=True)
class ListMap:
    """A list of objects that are told apart by one field."""

    key: str
    """JSON name of the field."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check that no two items have the same key."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Have the API server check the same."""
        keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [self.key]}
        return {**handler(schema), **keys}

    def _check(self, items: list[Any]) -> list[Any]:
        _refuse_repeated([getattr(item, to_snake(self.key)) for item in items], self.key)
        return items


@dataclass(frozen=True)
class ListSet:
    """A list of different values."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """Check that no two items are equal."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Have the API server check the same."""
        return {**handler(schema), "x-kubernetes-list-type": "set"}

    def _check(self, items: list[Any]) -> list[Any]:
        _refuse_repeated(items, None)
        return items


def _refuse_repeated(values: list[Hashable], key: str | None) -> None:
    repeated = [value for value, count in Counter(values).items() if count > 1]
    if repeated:
        of = f"`{key}` " if key else ""
        msg = f"must not repeat {of}{repeated[0]!r}"
        raise ValueError(msg)
