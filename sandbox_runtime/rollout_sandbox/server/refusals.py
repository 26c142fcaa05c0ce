"""Refusals of a request: the only errors that cross to the host by name."""

from enum import StrEnum


class Code(StrEnum):
    """Why a request is refused; the host has an error class for each (`errors.TOOL_ERRORS`)."""

    PATH_NOT_FOUND = "path_not_found"
    PATH_REFUSED = "path_refused"
    TOO_LARGE = "too_large"
    INVALID_REQUEST = "invalid_request"


class Refusal(Exception):
    """The request was understood and refused; the sandbox goes on working."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
