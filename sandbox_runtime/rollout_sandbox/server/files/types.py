"""Messages of the file tool; contents travel as raw bodies."""

from typing import Literal

from pydantic import Field

from ..types import Strict


class ReadQuery(Strict):
    """Read a regular file."""

    path: str = Field(min_length=1)
    max_bytes: int | None = Field(default=None, gt=0)


class WriteQuery(Strict):
    """Replace a file by the body of the request."""

    path: str = Field(min_length=1)
    mode: int = Field(default=0o644, ge=0, le=0o7777)
    parents: bool = True


class ListQuery(Strict):
    """List a directory."""

    path: str = Field(min_length=1)


class Listed(Strict):
    """One entry of a directory."""

    name: str
    kind: Literal["file", "directory", "symlink", "other"]
    size: int
    mode: int


class Listing(Strict):
    """Answer to `ListQuery`, by name."""

    entries: list[Listed]


class ExportRequest(Strict):
    """Archive the paths with all below them; the answer's body is a tar."""

    paths: list[str] = Field(min_length=1, max_length=1000)
    max_bytes: int | None = Field(default=None, gt=0)


class ImportQuery(Strict):
    """Unpack the body, a tar made by an export; members outside `paths` are refused."""

    paths: str = Field(min_length=1)
    """JSON list of the absolute paths that the export declared."""
