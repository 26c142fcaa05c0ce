"""Every error as RFC 9457 `application/problem+json`, with a reason that programs can test.

No answer holds a traceback: what is not foreseen is logged and answered with 500 `InternalError`.
"""

import logging
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException

from rollout_api.core import errors
from rollout_api.core.errors import GatewayError
from rollout_api.store.errors import DatabaseUnavailableError
from rollout_crds.validation import FieldError

MEDIA_TYPE = "application/problem+json"

_log = logging.getLogger(__name__)

_REASONS: tuple[tuple[type[GatewayError], HTTPStatus, str], ...] = (
    (errors.TaskSourceError, HTTPStatus.UNPROCESSABLE_ENTITY, "TaskSourceUnreadable"),
    (errors.InvalidSpecError, HTTPStatus.UNPROCESSABLE_ENTITY, "InvalidSpec"),
    (errors.InvalidInputError, HTTPStatus.UNPROCESSABLE_ENTITY, "InvalidRequest"),
    (errors.LeaseLostError, HTTPStatus.CONFLICT, "LeaseLost"),
    (errors.ConflictError, HTTPStatus.CONFLICT, "Conflict"),
    (errors.NotFoundError, HTTPStatus.NOT_FOUND, "NotFound"),
)
_REASON_OF_STATUS = {
    HTTPStatus.NOT_FOUND: "NotFound",
    HTTPStatus.METHOD_NOT_ALLOWED: "MethodNotAllowed",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "BodyTooLarge",
}
_FIELD_PREFIXES = ("body", "query", "path", "header")


class FieldProblem(BaseModel):
    """What is wrong with one field."""

    field: str
    message: str


class Problem(BaseModel):
    """An error as clients see it."""

    type: str
    title: str
    status: int
    detail: str
    instance: str | None = None
    reason: str
    errors: list[FieldProblem] | None = None


RESPONSES: dict[int | str, dict[str, Any]] = {
    "default": {
        "model": Problem,
        "description": "Problem",
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
}


def problem(
    status: int,
    reason: str,
    detail: str,
    *,
    instance: str | None = None,
    fields: Sequence[FieldError] = (),
    headers: dict[str, str] | None = None,
) -> JSONResponse:
    """Build the answer for an error."""
    content = Problem(
        type=f"urn:rollout-operator:problem:{reason}",
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        instance=instance,
        reason=reason,
        errors=[FieldProblem(field=f.field, message=f.message) for f in fields] or None,
    ).model_dump(exclude_none=True)
    return JSONResponse(content, status, headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Register the handlers."""
    app.add_exception_handler(GatewayError, _gateway_error)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)
    app.add_exception_handler(ValidationError, _validation_error)
    app.add_exception_handler(DatabaseUnavailableError, _unavailable)
    app.add_exception_handler(Exception, _unforeseen)


def field_errors(error: ValidationError | RequestValidationError) -> list[FieldError]:
    """The paths and messages of a validation error."""
    return [
        FieldError(_path(item["loc"]), str(item["msg"]).removeprefix("Value error, "))
        for item in error.errors()
    ]


def in_words(fields: Sequence[FieldError]) -> str:
    """The first few errors in one line."""
    texts = [f"{f.field}: {f.message}" if f.field else f.message for f in fields[:5]]
    return "; ".join(texts)


def _path(location: Sequence[Any]) -> str:
    parts = [str(part) for part in location]
    if len(parts) > 1 and parts[0] in _FIELD_PREFIXES:
        parts = parts[1:]
    return ".".join(parts)


async def _gateway_error(request: Request, error: Exception) -> JSONResponse:
    for kind, status, reason in _REASONS:
        if isinstance(error, kind):
            fields = error.errors if isinstance(error, errors.InvalidInputError) else ()
            return problem(status, reason, str(error), instance=request.url.path, fields=fields)
    return await _unforeseen(request, error)


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it
    reason = _REASON_OF_STATUS.get(HTTPStatus(error.status_code), "BadRequest")
    detail = f"{request.method} {request.url.path}: {error.detail}"
    headers = dict(error.headers) if error.headers else None
    return problem(error.status_code, reason, detail, instance=request.url.path, headers=headers)


async def _validation_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ValidationError | RequestValidationError)  # noqa: S101
    fields = field_errors(error)
    detail = in_words(fields)
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "InvalidRequest",
        detail,
        instance=request.url.path,
        fields=fields,
    )


async def _unavailable(request: Request, error: Exception) -> JSONResponse:
    _log.error("%s", error)
    return problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "StorageUnavailable",
        str(error),
        instance=request.url.path,
        headers={"Retry-After": "1"},
    )


async def _unforeseen(request: Request, _error: Exception) -> JSONResponse:
    return problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "InternalError",
        "a defect of the gateway; its log has the details",
        instance=request.url.path,
    )
