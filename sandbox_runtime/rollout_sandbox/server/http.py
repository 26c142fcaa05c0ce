"""Models to HTTP and back, and refusals to answers; shared by the tools' routes."""

from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from .refusals import Code, Refusal
from .types import ErrorBody

_STATUS: dict[Code, int] = {
    Code.PATH_NOT_FOUND: 404,
    Code.PATH_REFUSED: 403,
    Code.TOO_LARGE: 413,
    Code.INVALID_REQUEST: 422,
}
M = TypeVar("M", bound=BaseModel)


async def parse(request: Request, kind: type[M]) -> M:
    """Return the body as a model.

    Raises:
        Refusal: the body does not fit.
    """
    try:
        return kind.model_validate_json(await request.body())
    except ValidationError as error:
        raise Refusal(Code.INVALID_REQUEST, str(error)) from error


def parse_query(request: Request, kind: type[M]) -> M:
    """Return the query parameters as a model.

    Raises:
        Refusal: they do not fit.
    """
    try:
        return kind.model_validate(dict(request.query_params))
    except ValidationError as error:
        raise Refusal(Code.INVALID_REQUEST, str(error)) from error


def model(value: BaseModel) -> Response:
    """Return a model as JSON."""
    return Response(value.model_dump_json(), media_type="application/json")


def empty() -> Response:
    """Return an answer without a body."""
    return Response(status_code=204)


def refused(_: Request, error: Exception) -> Response:
    """Turn a `Refusal` into an answer."""
    assert isinstance(error, Refusal)  # noqa: S101 - registered for Refusal only
    body = ErrorBody(error=error.code, message=str(error))
    return Response(
        body.model_dump_json(), status_code=_STATUS[error.code], media_type="application/json"
    )
