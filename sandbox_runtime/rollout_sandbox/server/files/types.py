"""Messages of the file tool; contents travel as raw bytes."""

from typing import Literal

from ..messages import Annotated, NamedTuple, nonempty, positive

Paths = Annotated[list[str], nonempty]
Path = Annotated[str, nonempty]
Limit = Annotated[int | None, positive]


class ReadRequest(NamedTuple):
    """Read a regular file."""

    path: Path
    max_bytes: Limit = None


class WriteRequest(NamedTuple):
    """Replace a file by the content of the request."""

    path: Path
    mode: int = 0o644
    parents: bool = True


class ListRequest(NamedTuple):
    """List a directory."""

    path: Path


class Listed(NamedTuple):
    """One entry of a directory."""

    name: str
    kind: Literal["file", "directory", "symlink", "other"]
    size: int
    mode: int


class Listing(NamedTuple):
    """Answer to `ListRequest`, by name."""

    entries: list[Listed]


class ExportRequest(NamedTuple):
    """Archive the paths with all below them; the answer is a tar."""

    paths: Paths
    max_bytes: Limit = None


class ImportRequest(NamedTuple):
    """Unpack the content, a tar made by an export of `paths`; other members are refused."""

    paths: Paths
