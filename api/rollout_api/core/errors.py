"""What can be wrong with a request, independent of how it came in.

GatewayError
├── NotFoundError         what the request names does not exist
├── ConflictError         it contradicts the present state
├── LeaseLostError        the caller does not hold the lease any more
└── InvalidInputError     it breaks a rule; `errors` tells where
    ├── InvalidSpecError  a resource breaks a rule
    └── TaskSourceError   no task can be had from the task source
"""

from collections.abc import Sequence

from rollout_crds.validation import FieldError


class GatewayError(Exception):
    """The request can not be served; the message is for its sender."""


class NotFoundError(GatewayError):
    """What the request names does not exist."""


class ConflictError(GatewayError):
    """The request contradicts the present state."""


class LeaseLostError(GatewayError):
    """The caller does not hold the lease any more."""


class InvalidInputError(GatewayError):
    """The request breaks a rule."""

    def __init__(self, message: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(message)
        self.errors = tuple(errors)


class InvalidSpecError(InvalidInputError):
    """A resource breaks a rule of its kind."""


class TaskSourceError(InvalidInputError):
    """No task can be had from the task source."""
