"""Names of what belongs to an object, within the limits of names."""

import hashlib

_MAX_NAME = 63


def child_name(owner: str, suffix: str) -> str:
    """`OWNER-SUFFIX`, shortened with a hash of the owner's name when it would be too long."""
    room = _MAX_NAME - len(suffix) - 1
    if len(owner) <= room:
        return f"{owner}-{suffix}"
    short = digest(owner)[:8]
    return f"{owner[: room - len(short) - 1].rstrip('-')}-{short}-{suffix}"


def digest(text: str) -> str:
    """A short hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]
