"""What can go wrong between a client and the gateway, one class per thing that a caller can do.

    ClientError
      GatewayError        the gateway refused a request
        Invalid           422, 400: fix the request; `field_errors` says where
        NotFound          404
        Conflict          409: read again and retry, or the lease is lost
        TooManyRequests   429: slow down
        ServerError       other 5xx: a defect of the gateway; its log has the details
        Unavailable       503, or no answer at all: retry later
      WaitTimeout         a condition did not come in time
      ConditionFailed     a condition became False for good

Errors of the HTTP library never leave this package; they are chained as the cause.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class FieldError:
    """One field of a request that the gateway refused."""

    field: str
    message: str


class ClientError(Exception):
    """Base of all errors of this package."""


class WaitTimeout(ClientError, TimeoutError):
    """A condition did not come in time."""


class ConditionFailed(ClientError):
    """A condition became `False` for good, so waiting for it is pointless."""

    def __init__(self, condition: str, reason: str, message: str) -> None:
        super().__init__(f"{condition} is False: {reason}: {message}")
        self.condition = condition
        self.reason = reason
        self.message = message


class GatewayError(ClientError):
    """The gateway refused a request, or did not answer it.

    Attributes:
        detail: What is wrong, in a sentence.
        status: HTTP status; 0 when there was no answer.
        reason: One CamelCase word for the cause, as the gateway gives it.
        request: Method and path, such as `PUT /v1/rolloutjobs/demo`.
        field_errors: The fields that are wrong.
    """

    def __init__(
        self,
        detail: str,
        *,
        request: str,
        status: int = 0,
        reason: str = "",
        field_errors: tuple[FieldError, ...] = (),
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.request = request
        self.status = status
        self.reason = reason
        self.field_errors = field_errors

    def __str__(self) -> str:
        fields = "".join(f"; {e.field}: {e.message}" for e in self.field_errors)
        return f"{self.detail}{fields} ({self.request})"


class Invalid(GatewayError):
    """The request is wrong and stays wrong until it is changed."""


class NotFound(GatewayError):
    """There is no such object."""


class Conflict(GatewayError):
    """The object has changed, is being deleted, or belongs to somebody else by now."""


class TooManyRequests(GatewayError):
    """The gateway asks for fewer requests."""


class ServerError(GatewayError):
    """A defect of the gateway."""


class Unavailable(GatewayError):
    """The gateway does not answer, or cannot work now."""


_BY_STATUS: dict[int, type[GatewayError]] = {
    400: Invalid,
    404: NotFound,
    409: Conflict,
    422: Invalid,
    429: TooManyRequests,
    503: Unavailable,
}
_MAX_DETAIL = 2048


def error_from_problem(status: int, problem: object, request: str) -> GatewayError:
    """The error for an answer with `status` and the decoded body `problem` (RFC 9457)."""
    default = ServerError if status >= 500 else GatewayError
    body: Mapping[str, Any] = problem if isinstance(problem, Mapping) else {}
    detail = str(body.get("detail") or body.get("title") or f"HTTP status {status}")
    return _BY_STATUS.get(status, default)(
        detail[:_MAX_DETAIL],
        request=request,
        status=status,
        reason=str(body.get("reason") or ""),
        field_errors=_field_errors(body.get("errors")),
    )


def unreachable(url: str, cause: BaseException, request: str) -> Unavailable:
    """The error for a gateway at `url` that gives no answer."""
    text = str(cause) or type(cause).__name__
    return Unavailable(f"no answer from the gateway at {url}: {text}", request=request)


def _field_errors(errors: object) -> tuple[FieldError, ...]:
    if not isinstance(errors, list):
        return ()
    return tuple(
        FieldError(str(e.get("field", "")), str(e.get("message", "")))
        for e in errors
        if isinstance(e, Mapping)
    )
