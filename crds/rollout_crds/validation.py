"""Validation as Kubernetes does it, with errors that name the field and the remedy.

Input is held to its JSON types (the string `"3"` is not an integer) and to the names of the JSON
form (`samplesPerTask`, never `samples_per_task`), so that what passes here passes at an API server.
"""

import difflib
import json
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from rollout_crds.base import PATTERN_HINTS

ModelT = TypeVar("ModelT", bound=BaseModel)


@dataclass(frozen=True)
class FieldError:
    """What is wrong with one field."""

    field: str
    """Path as users write it, such as `spec.tasks.inline[0].id`; empty for the whole object."""
    message: str
    """What the value must be, what it is, and the remedy."""
    loc: tuple[str | int, ...] = ()
    """The same path in parts."""


def validate(model: type[ModelT], data: object) -> ModelT:
    """Build a model from JSON data, strictly.

    Raises:
        pydantic.ValidationError: `field_errors` turns it into words.
    """
    return model.model_validate_json(json.dumps(data), strict=True, by_alias=True, by_name=False)


def field_errors(error: ValidationError, model: type[BaseModel] | None = None) -> list[FieldError]:
    """Turn a validation error into one entry per field.

    Args:
        error: What pydantic raised.
        model: The model that was validated; with it, unknown fields get the nearest valid name.
    """
    return [_field_error(details, model) for details in error.errors(include_url=False)]


def unknown_field(name: str, valid: Iterable[str]) -> str:
    """Words for a field that does not exist, with the nearest one that does."""
    names = sorted(valid)
    nearest = _nearest(name, names)
    advice = f"did you mean `{nearest}`? " if nearest else ""
    return f"unknown field; {advice}valid fields: {', '.join(names)}"


def not_one_of(value: object, valid: Iterable[str]) -> str:
    """Words for a value outside a fixed set, with the nearest one inside."""
    names = list(valid)
    wanted = f"must be `{names[0]}`" if len(names) == 1 else f"must be one of {_ticked(names)}"
    nearest = _nearest(str(value), names)
    advice = f"; did you mean `{nearest}`?" if nearest and len(names) > 1 else ""
    return f"{wanted}, got {describe(value)}{advice}"


def describe(value: object) -> str:
    """A JSON value with its type in words: `the string 'x'`."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string {_shortened(value)!r}"
        case Mapping():
            return "a mapping"
        case _:
            return "a list"


def _field_error(details: ErrorDetails, model: type[BaseModel] | None) -> FieldError:
    loc, parent = _resolve(details["loc"], model)
    if details["type"] == "extra_forbidden":
        message = (
            unknown_field(str(loc[-1]), _names(parent))
            if parent is not None
            else "unknown field; remove it"
        )
    else:
        message = _message(details)
    return FieldError(field_path(loc), message, loc)


def field_path(loc: tuple[str | int, ...]) -> str:
    """A path in the notation of Kubernetes: `spec.tasks.inline[0].id`."""
    return "".join(map(_path_part, loc)).removeprefix(".")


def _path_part(part: str | int) -> str:
    is_field = isinstance(part, str) and re.fullmatch(r"[\w-]+", part)
    return f".{part}" if is_field else f"[{part}]"


_KEY_OF_MAPPING = "[key]"
"""What pydantic puts after a key of a mapping when the key itself is wrong."""

_WANTED = {
    "string": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "`true` or `false`",
    "list": "a list",
    "tuple": "a list",
    "dict": "a mapping",
    "model": "a mapping",
    "model_attributes": "a mapping",
    "datetime": "a time such as 2026-01-31T12:00:00Z",
    "finite_number": "a finite number",
}


def _type_message(details: ErrorDetails) -> str | None:
    wanted = re.fullmatch(r"(.+?)_(?:type|parsing|from_float)|(finite_number)", details["type"])
    name = wanted and (wanted[1] or wanted[2])
    if name not in _WANTED:
        return None
    value = details["input"]
    message = f"must be {_WANTED[name]}, got {describe(value)}"
    if name == "string" and isinstance(value, int | float):
        message += "; put it in quotes" if isinstance(value, bool) else f'; write "{value}"'
    return message


def _message(details: ErrorDetails) -> str:
    if (message := _type_message(details)) is not None:
        return message
    words = _MESSAGES.get(details["type"])
    if words is not None:
        return words(details.get("ctx", {}), details["input"])
    return details["msg"][:1].lower() + details["msg"][1:]


def _bound(words: str, key: str) -> Callable[[dict[str, Any], Any], str]:
    return lambda ctx, value: f"must be {words} {ctx[key]}, got {value}"


def _at_most(ctx: dict[str, Any], value: Any) -> str:
    return f"must have at most {ctx['max_length']} items, has {ctx['actual_length'] or len(value)}"


def _at_least(ctx: dict[str, Any], _value: Any) -> str:
    return f"must have at least {_count(ctx['min_length'], 'item')}, has {ctx['actual_length']}"


def _too_long(ctx: dict[str, Any], value: str) -> str:
    return f"must have at most {ctx['max_length']} characters, has {len(value)}"


def _too_short(ctx: dict[str, Any], value: str) -> str:
    if not value:
        return "must not be empty"
    return f"must have at least {_count(ctx['min_length'], 'character')}, has {len(value)}"


def _pattern(ctx: dict[str, Any], value: str) -> str:
    wanted = PATTERN_HINTS.get(ctx["pattern"], f"must match the pattern {ctx['pattern']}")
    return f"{wanted}, got {_shortened(value)!r}"


def _tag(ctx: dict[str, Any], _value: Any) -> str:
    expected = _quoted(ctx["expected_tags"])
    return f"`{ctx['discriminator'][1:-1]}` {not_one_of(ctx['tag'], expected)}"


_MESSAGES: dict[str, Callable[[dict[str, Any], Any], str]] = {
    "missing": lambda _ctx, _value: "must be set",
    "greater_than_equal": _bound("greater than or equal to", "ge"),
    "less_than_equal": _bound("less than or equal to", "le"),
    "too_long": _at_most,
    "too_short": _at_least,
    "string_too_long": _too_long,
    "string_too_short": _too_short,
    "string_pattern_mismatch": _pattern,
    "literal_error": lambda ctx, value: not_one_of(value, _quoted(ctx["expected"])),
    "enum": lambda ctx, value: not_one_of(value, _quoted(ctx["expected"])),
    "union_tag_invalid": _tag,
    "union_tag_not_found": lambda ctx, _value: f"`{ctx['discriminator'][1:-1]}` must be set",
    "value_error": lambda ctx, _value: str(ctx["error"]),
}


def _resolve(
    loc: tuple[str | int, ...], model: type[BaseModel] | None
) -> tuple[tuple[str | int, ...], type[BaseModel] | None]:
    """Drop the parts of `loc` that are tags of unions, and find the model that holds its end."""
    kept: list[str | int] = []
    annotation: Any = model
    parent = model
    for part in loc:
        if part == _KEY_OF_MAPPING:
            continue
        annotation = _bare(annotation)
        members = _union_members(annotation)
        if len(members) > 1 and (chosen := _tagged(members, part)) is not None:
            annotation = chosen
            continue
        parent = _as_model(annotation)
        annotation = _step(annotation, part)
        kept.append(part)
    return tuple(kept), parent


def _bare(annotation: Any) -> Any:
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif len(members := _union_members(annotation)) == 1:
            annotation = members[0]
        else:
            return annotation


def _union_members(annotation: Any) -> list[Any]:
    if get_origin(annotation) not in {Union, types.UnionType}:
        return []
    return [member for member in get_args(annotation) if member is not type(None)]


def _tagged(members: list[Any], tag: str | int) -> Any:
    """The member of a union of models that has `tag` as a literal value of one of its fields."""
    for member in filter(None, map(_as_model, members)):
        for field in member.model_fields.values():
            if get_origin(field.annotation) is Literal and tag in get_args(field.annotation):
                return member
    return None


def _as_model(annotation: Any) -> type[BaseModel] | None:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return annotation if is_model else None


def _step(annotation: Any, part: str | int) -> Any:
    model = _as_model(annotation)
    if model is not None:
        found = (f for name, f in model.model_fields.items() if part in {f.alias or name, name})
        field = next(found, None)
        return field.annotation if field else None
    arguments = get_args(annotation)
    return arguments[-1 if get_origin(annotation) is dict else 0] if arguments else None


def _names(model: type[BaseModel]) -> Iterator[str]:
    return (field.alias or name for name, field in model.model_fields.items())


def _nearest(name: str, names: list[str]) -> str | None:
    by_folded = {re.sub(r"[-_ ]", "", valid).lower(): valid for valid in names}
    folded = re.sub(r"[-_ ]", "", name).lower()
    matches = difflib.get_close_matches(folded, by_folded, n=1, cutoff=0.6)
    return by_folded[matches[0]] if matches else None


def _quoted(text: str) -> list[str]:
    return re.findall(r"'([^']*)'", text)


def _ticked(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
