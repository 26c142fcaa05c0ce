"""The blob store: files named by their sha256 below one URL, which fsspec reads and writes.

A blob is written under a temporary name and renamed, so whoever finds it finds all of it; storing
the same content twice, or at the same time, ends in the same file.
"""

import asyncio
import hashlib
import uuid
from pathlib import Path
from typing import Any

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.wire import BlobRef
from rollout_stages.errors import Verdict, Verdicts, boundary

_VERDICTS: Verdicts = {OSError: Verdict(FailureReason.BLOB_UNAVAILABLE, retryable=True)}


class FsspecBlobStore:
    """Blobs below a URL such as `file:///var/lib/rollout/blobs`.

    Args:
        url: The directory.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._opened: tuple[Any, str] | None = None  # fsspec's file system, and the root in it

    async def put(self, content: bytes) -> BlobRef:
        """Store content.

        Raises:
            StageError: The store cannot be written.
        """
        async with boundary(Boundary.WORKER, _VERDICTS, f"write to the blob store {self._url}"):
            return await asyncio.to_thread(self._put, content)

    async def read(self, ref: BlobRef) -> bytes:
        """Content of a blob.

        Raises:
            StageError: It cannot be read, or is damaged.
        """
        async with boundary(Boundary.WORKER, _VERDICTS, f"read blob {ref.sha256} in {self._url}"):
            return await asyncio.to_thread(self._read, ref)

    async def put_file(self, source: Path) -> BlobRef:
        """Store a file whose name is its sha256.

        Raises:
            StageError: The store cannot be written.
        """
        async with boundary(Boundary.WORKER, _VERDICTS, f"write to the blob store {self._url}"):
            return await asyncio.to_thread(self._put_file, source)

    async def fetch(self, ref: BlobRef, destination: Path) -> None:
        """Copy a blob to a local file, unless that is there already.

        Raises:
            StageError: It cannot be read.
        """
        async with boundary(Boundary.WORKER, _VERDICTS, f"read blob {ref.sha256} in {self._url}"):
            await asyncio.to_thread(self._fetch, ref, destination)

    def local_directory(self) -> Path | None:
        """The store's directory, where it is one of this machine."""
        fs, root = self._open()
        return Path(root) if "file" in _protocols(fs) else None

    def _open(self) -> tuple[Any, str]:
        if self._opened is None:
            from fsspec.core import url_to_fs

            fs, root = url_to_fs(self._url)
            fs.makedirs(root, exist_ok=True)
            self._opened = fs, root
        return self._opened

    def _put(self, content: bytes) -> BlobRef:
        fs, root = self._open()
        ref = BlobRef(sha256=hashlib.sha256(content).hexdigest(), size=len(content))
        if not fs.exists(f"{root}/{ref.sha256}"):
            scratch = f"{root}/.writing-{uuid.uuid4().hex}"
            fs.pipe_file(scratch, content)
            fs.mv(scratch, f"{root}/{ref.sha256}")
        return ref

    def _read(self, ref: BlobRef) -> bytes:
        fs, root = self._open()
        content: bytes = fs.cat_file(f"{root}/{ref.sha256}")
        if hashlib.sha256(content).hexdigest() != ref.sha256:
            msg = "its content does not fit its name"
            raise OSError(msg)
        return content

    def _put_file(self, source: Path) -> BlobRef:
        fs, root = self._open()
        ref = BlobRef(sha256=source.name, size=source.stat().st_size)
        if not fs.exists(f"{root}/{ref.sha256}"):
            scratch = f"{root}/.writing-{uuid.uuid4().hex}"
            fs.put_file(str(source), scratch)
            fs.mv(scratch, f"{root}/{ref.sha256}")
        return ref

    def _fetch(self, ref: BlobRef, destination: Path) -> None:
        if destination.exists():
            return
        fs, root = self._open()
        scratch = destination.with_name(f".fetching-{uuid.uuid4().hex}")
        try:
            fs.get_file(f"{root}/{ref.sha256}", str(scratch))
            scratch.replace(destination)
        finally:
            scratch.unlink(missing_ok=True)


def _protocols(fs: Any) -> tuple[str, ...]:
    return (fs.protocol,) if isinstance(fs.protocol, str) else tuple(fs.protocol)
