"""JSON schema of a model as the structural schema that a CustomResourceDefinition needs.

A structural schema has a type at every place, no references and no unions. What a model means is
kept: bounds, patterns, enums, descriptions, defaults (those of nested models too, so that the
stored object shows them), and the `x-kubernetes-*` keys that the models declare.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, NoDefault
from pydantic_core.core_schema import WithDefaultSchema

Schema = dict[str, Any]

_KEPT = {
    *("description", "enum", "format", "pattern", "required", "default"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
    *("minProperties", "maxProperties"),
}
_INT32_MAX = 2**31 - 1


class UnsupportedSchemaError(ValueError):
    """A model uses something that a structural schema cannot say."""


class _Generator(GenerateJsonSchema):
    """Shows what default factories make; an empty collection is no default."""

    def get_default_value(self, schema: WithDefaultSchema) -> Any:
        factory: Callable[..., Any] | None = schema.get("default_factory")
        if factory is None:
            return super().get_default_value(schema)
        value = factory()
        if isinstance(value, BaseModel):
            return value.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return value or NoDefault


def structural_schema(model: type[BaseModel]) -> Schema:
    """The structural schema of a model, in JSON names.

    Raises:
        UnsupportedSchemaError: It has a union of types, a float, or an unbounded construct that
            Kubernetes does not allow.
    """
    schema = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    return _structural(schema, schema.get("$defs", {}), model.__name__)


def without_defaults(schema: Schema) -> Schema:
    """The same schema without defaults, for status: what is not there was not observed."""
    return {
        key: _map_nested(key, value, without_defaults)
        for key, value in schema.items()
        if key != "default"
    }


def _map_nested(key: str, value: Any, function: Callable[[Schema], Schema]) -> Any:
    if key == "properties":
        return {name: function(child) for name, child in value.items()}
    return function(value) if key in {"items", "additionalProperties"} else value


def _structural(schema: Schema, defs: Mapping[str, Schema], path: str) -> Schema:
    schema = _resolved(schema, defs, path)
    kept = {k: v for k, v in schema.items() if k in _KEPT or k.startswith("x-kubernetes-")}
    if kept.get("default", ...) is None:
        del kept["default"]
    if "description" in kept:
        kept["description"] = _unwrapped(kept["description"])
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    match schema.get("type"):
        case "object":
            return {**kept, "type": "object", **_object(schema, defs, path)}
        case "array":
            items = _structural(schema["items"], defs, f"{path}[]")
            return {"x-kubernetes-list-type": "atomic", **kept, "type": "array", "items": items}
        case "integer":
            return {**kept, "type": "integer", "format": _integer_format(kept)}
        case "string" | "boolean" as scalar:
            return {**kept, "type": scalar}
        case None if not schema.keys() - {"description", "title"}:
            return {**kept, "x-kubernetes-preserve-unknown-fields": True}
        case other:
            msg = f"{path}: a structural schema has no place for {other or sorted(schema)}"
            raise UnsupportedSchemaError(msg)


def _resolved(schema: Schema, defs: Mapping[str, Schema], path: str) -> Schema:
    """Follow references, and turn `X or null` into `X`; the outermost description wins."""
    while True:
        if "$ref" in schema:
            target = defs[schema["$ref"].removeprefix("#/$defs/")]
            schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
        elif "anyOf" in schema:
            members = [member for member in schema["anyOf"] if member.get("type") != "null"]
            if len(members) != 1:
                msg = f"{path}: a structural schema has no unions; use one optional field each"
                raise UnsupportedSchemaError(msg)
            schema = {**members[0], **{k: v for k, v in schema.items() if k != "anyOf"}}
        else:
            return schema


def _object(schema: Schema, defs: Mapping[str, Schema], path: str) -> Schema:
    if "properties" in schema:
        properties = {
            name: _structural(child, defs, f"{path}.{name}")
            for name, child in schema["properties"].items()
        }
        return {"properties": properties}
    if isinstance(schema.get("additionalProperties"), dict):
        values = _structural(schema["additionalProperties"], defs, f"{path}.*")
        return {"additionalProperties": values}
    return {"x-kubernetes-preserve-unknown-fields": True}


def _unwrapped(text: str) -> str:
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _integer_format(schema: Schema) -> str:
    return "int32" if abs(schema.get("maximum", _INT32_MAX + 1)) <= _INT32_MAX else "int64"
