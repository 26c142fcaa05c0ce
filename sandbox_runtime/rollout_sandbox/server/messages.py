"""Messages to JSON and back: named tuples, checked against their own annotations.

Written for the server inside, whose start and memory count for every sandbox: a validation library
would cost more than all the rest of it.

>>> class Ask(NamedTuple):
...     path: str
...     limit: Annotated[int | None, positive] = None
>>> decode(Ask, encode(Ask("/x", 3)))
Ask(path='/x', limit=3)
>>> decode(Ask, b'{"path": "/x", "limit": 0}')
Traceback (most recent call last):
ValueError: Ask: limit must be over 0
"""

import json
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, get_args, get_origin

__all__ = ["Annotated", "NamedTuple", "decode", "encode", "nonempty", "positive"]

M = TypeVar("M")
_NAMES = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "a boolean",
    NoneType: "null",
}


def positive(value: float | None) -> str | None:
    """Say what is wrong with a number that must be over 0 where it is given."""
    return "must be over 0" if value is not None and value <= 0 else None


def nonempty(value: str | list[Any]) -> str | None:
    """Say what is wrong with a text or list that must hold something."""
    return None if value else "must not be empty"


def encode(message: object) -> bytes:
    """Return a message as one line of JSON."""
    return json.dumps(_plain(message), separators=(",", ":")).encode()


def decode(kind: type[M], data: bytes | bytearray) -> M:
    """Return the message in `data`.

    Raises:
        ValueError: `data` is no JSON or does not fit; names the field.
    """
    try:
        message: M = _build(kind, json.loads(data))
    except (ValueError, RecursionError) as error:
        problem = f"{kind.__name__}: {error}"
        raise ValueError(problem) from None
    return message


def _plain(value: object) -> object:
    if fields := getattr(value, "_fields", None):
        return {name: _plain(getattr(value, name)) for name in fields}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _build(kind: Any, data: object) -> Any:
    """Make a message of parsed JSON; any other value is checked and kept."""
    if not hasattr(kind, "_fields"):
        if problem := _problem(data, kind):
            raise ValueError(problem)
        if get_origin(kind) is list and isinstance(data, list):
            return [_build(get_args(kind)[0], part) for part in data]
        return data
    if not isinstance(data, dict):
        message = "must be an object"
        raise ValueError(message)
    if unknown := [name for name in data if name not in kind._fields]:
        message = f"unknown field {unknown[0]!r}"
        raise ValueError(message)
    if missing := [f for f in kind._fields if f not in data and f not in kind._field_defaults]:
        message = f"{missing[0]} is missing"
        raise ValueError(message)
    return kind(**{name: _field(name, kind, part) for name, part in data.items()})


def _field(name: str, kind: Any, data: object) -> Any:
    try:
        return _build(kind.__annotations__[name], data)
    except ValueError as error:
        message = f"{name} {error}"
        raise ValueError(message) from None


def _problem(value: object, kind: Any) -> str | None:
    """Say why `value` is not of `kind`, None if it is."""
    if kind in _NAMES:
        return None if _is(value, kind) else f"must be {_NAMES[kind]}"
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        base, rule = arguments
        problem: str | None = _problem(value, base) or rule(value)
        return problem
    if origin is UnionType:
        problems = [_problem(value, option) for option in arguments]
        return None if None in problems else problems[0]
    if origin is Literal:
        return None if value in arguments else f"must be one of {', '.join(map(str, arguments))}"
    if origin is dict:
        fits = isinstance(value, dict) and all(_is(v, arguments[1]) for v in value.values())
        return None if fits else "must be an object of strings"
    if not isinstance(value, list):
        return "must be a list"
    (part,) = arguments
    problems = [] if hasattr(part, "_fields") else [_problem(item, part) for item in value]
    return next((f"holds what {problem}" for problem in problems if problem), None)


def _is(value: object, kind: type) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
