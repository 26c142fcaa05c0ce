"""The one error of set-up: what is missing and what to do about it, in one line."""


class SetupError(Exception):
    """A component cannot be set up; the message names the cause and the remedy."""
