"""Answers put together from JSON that is stored as text."""

from collections.abc import Iterable

from fastapi import Response


def array(items: Iterable[str]) -> str:
    """A JSON array of JSON texts."""
    return f"[{','.join(items)}]"


def json_response(text: str, status: int = 200) -> Response:
    """An answer whose body is JSON text."""
    return Response(text, status, media_type="application/json")
