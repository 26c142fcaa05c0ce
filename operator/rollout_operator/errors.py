"""What the ports can raise; the adapters' libraries never show through.

OperatorError
  Unavailable   the cluster or the gateway does not answer: try again later
  Refused       it refuses the request, with a reason: again only when something has changed
    Conflict    because of another object, or another version of this one
  Missing       there is no such object (any more)
"""


class OperatorError(Exception):
    """Base of the operator's errors."""


class Unavailable(OperatorError):
    """No answer, or an answer that it cannot work now."""


class Refused(OperatorError):
    """A request that stays wrong while nothing changes."""

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


class Conflict(Refused):
    """A request that does not fit what is there."""


class Missing(OperatorError):
    """No such object."""
