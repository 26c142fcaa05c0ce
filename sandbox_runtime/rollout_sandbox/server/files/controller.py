"""Reads, writes, lists and archives files with the rights of the sandbox's user."""

import io
import os
import stat
from pathlib import Path
from typing import Literal

from ..refusals import Code, Refusal
from ..types import ServerConfig
from .archive import open_regular, pack, unpack
from .types import (
    ExportRequest,
    ImportRequest,
    Listed,
    Listing,
    ListRequest,
    ReadRequest,
    WriteRequest,
)


class FilesController:
    """The file tool. Relative paths start at the working directory."""

    def __init__(self, config: ServerConfig) -> None:
        self._config = config

    def read(self, request: ReadRequest) -> bytes:
        """Return a file's content.

        Raises:
            Refusal: missing, not a regular file, not readable, or larger than the limit.
        """
        limit = self._limit(request.max_bytes)
        with open_regular(self._resolve(request.path)) as source:
            data = source.read(limit + 1)
        if len(data) > limit:
            raise Refusal(Code.TOO_LARGE, f"{request.path} holds more than {limit} bytes")
        return data

    def write(self, request: WriteRequest, content: memoryview) -> None:
        """Replace a file's content in one step.

        Raises:
            Refusal: the directory is missing and `parents` is false, or permission is denied.
        """
        path = self._resolve(request.path)
        scratch = path.with_name(f".{path.name}.{os.getpid()}-{id(content):x}")
        try:
            if request.parents:
                path.parent.mkdir(parents=True, exist_ok=True)
            scratch.write_bytes(content)
            scratch.chmod(request.mode)
            scratch.replace(path)
        except FileNotFoundError as error:
            raise Refusal(Code.PATH_NOT_FOUND, f"{path.parent}: no such directory") from error
        except OSError as error:
            scratch.unlink(missing_ok=True)
            raise Refusal(Code.PATH_REFUSED, f"{request.path}: {error.strerror}") from error

    def list_directory(self, request: ListRequest) -> Listing:
        """Return a directory's entries.

        Raises:
            Refusal: missing, not a directory, or not readable.
        """
        path = self._resolve(request.path)
        try:
            entries = sorted(path.iterdir())
        except FileNotFoundError as error:
            raise Refusal(Code.PATH_NOT_FOUND, f"{request.path}: no such directory") from error
        except OSError as error:
            raise Refusal(Code.PATH_REFUSED, f"{request.path}: {error.strerror}") from error
        return Listing(entries=[_listed(entry) for entry in entries])

    def export(self, request: ExportRequest) -> bytes:
        """Return a tar of the paths."""
        target = io.BytesIO()
        paths = [str(self._resolve(path)) for path in request.paths]
        pack(paths, target, self._limit(request.max_bytes))
        return target.getvalue()

    def unpack(self, request: ImportRequest, archive: memoryview) -> None:
        """Unpack an export of the request's paths."""
        try:
            unpack(io.BytesIO(archive), [str(self._resolve(path)) for path in request.paths])
        except OSError as error:
            raise Refusal(Code.PATH_REFUSED, f"{error.filename}: {error.strerror}") from error

    def _resolve(self, path: str) -> Path:
        return Path(self._config.workdir, path)

    def _limit(self, wanted: int | None) -> int:
        return min(wanted or self._config.transfer_bytes, self._config.transfer_bytes)


def _listed(path: Path) -> Listed:
    status = path.lstat()
    return Listed(
        name=path.name,
        kind=_kind(status.st_mode),
        size=status.st_size,
        mode=stat.S_IMODE(status.st_mode),
    )


def _kind(mode: int) -> Literal["file", "directory", "symlink", "other"]:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "symlink" if stat.S_ISLNK(mode) else "other"
