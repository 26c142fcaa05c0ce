"""Immutable layers: stored as blobs named by their sha256, unpacked once per node.

A blob (`blobs/HASH`, a zstd tar) may lie in a directory that all nodes share; the cache
(`layers/HASH/upper`) lies on the node. Neither is ever changed once it has its name.
"""

import fcntl
import hashlib
import io
import os
import re
import tempfile
from pathlib import Path
from typing import IO, Any, cast

import zstandard

from .errors import LayerNotFound
from .eviction import Lease
from .layer_tar import DamagedLayer, pack, unpack
from .trees import remove_tree

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class LayerStore:
    """Commits and materialises layers."""

    def __init__(self, blobs: Path, cache: Path) -> None:
        self._blobs = blobs
        self._cache = cache
        for directory in (blobs, cache):
            directory.mkdir(parents=True, exist_ok=True)

    def commit(self, upper: Path) -> str:
        """Store the content of an upper directory; return its digest, `sha256:HEX`."""
        handle, name = tempfile.mkstemp(dir=self._blobs, prefix=".writing-")
        scratch = Path(name)
        try:
            with os.fdopen(handle, "wb") as raw:
                hashing = _HashingWriter(raw)
                with zstandard.ZstdCompressor(level=3).stream_writer(
                    cast("IO[bytes]", hashing), closefd=False
                ) as target:
                    pack(upper, target)
                raw.flush()
                os.fsync(raw.fileno())
            digest = f"sha256:{hashing.hexdigest()}"
            scratch.chmod(0o444)
            scratch.replace(self.blob(digest))
        finally:
            scratch.unlink(missing_ok=True)
        return digest

    def blob(self, digest: str) -> Path:
        """Return where the layer's blob lies.

        Raises:
            LayerNotFound: `digest` does not have the form `sha256:HEX`.
        """
        if not _DIGEST.fullmatch(digest):
            message = f"{digest!r} is not a layer digest (`sha256:` and 64 hex digits)"
            raise LayerNotFound(message)
        return self._blobs / digest.removeprefix("sha256:")

    def materialise(self, digest: str, lease: Lease) -> Path:
        """Return the layer's directory on this node, unpacked first when it is not there; hold it.

        Raises:
            LayerNotFound: no such blob, or its content does not fit its name.
        """
        blob = self.blob(digest)
        target = self._cache / blob.name
        lease.hold(target)
        if target.exists():
            return target
        with (self._cache / f".{blob.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                self._unpack(blob, target)
        return target

    def _unpack(self, blob: Path, target: Path) -> None:
        scratch = Path(tempfile.mkdtemp(dir=self._cache, prefix=".unpacking-"))
        try:
            _verify(blob)
            with blob.open("rb") as raw, zstandard.ZstdDecompressor().stream_reader(raw) as source:
                unpack(source, scratch / "upper")
            (scratch / "work").mkdir()
            scratch.chmod(0o755)
            scratch.rename(target)
        except DamagedLayer as error:
            message = f"{blob}: the layer is damaged: {error}"
            raise LayerNotFound(message) from error
        finally:
            remove_tree(scratch)


def _verify(blob: Path) -> None:
    try:
        with blob.open("rb") as raw:
            found = hashlib.file_digest(raw, "sha256").hexdigest()
    except FileNotFoundError as error:
        message = f"{blob}: no such layer; was it committed with the same blob directory?"
        raise LayerNotFound(message) from error
    if found != blob.name:
        message = f"{blob}: the content's sha256 is {found}; remove the file and prepare again"
        raise LayerNotFound(message)


class _HashingWriter(io.RawIOBase):
    """Hashes what passes through to a file."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self._hash = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._hash.update(data)
        return self._target.write(data)

    def hexdigest(self) -> str:
        return self._hash.hexdigest()
