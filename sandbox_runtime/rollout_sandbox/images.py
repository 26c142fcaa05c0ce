"""From the image a spec names to one that is on this node in a form the backend enters.

A name is a path to a SIF or to a root file system directory, or an archive that Apptainer converts
(`docker-archive:FILE`, `oci-archive:FILE`, `oci:DIRECTORY`). Conversions are kept in a cache by the
content they came from.
"""

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from .errors import ImageNotFound
from .eviction import Lease
from .ports import ImageRef, SandboxBackend
from .trees import remove_tree

_ARCHIVES = ("docker-archive", "oci-archive", "oci")


class ImageCache:
    """Resolves image names; `apptainer` is needed only for archives."""

    def __init__(self, directory: Path, apptainer: Path | None) -> None:
        self._directory = directory
        self._apptainer = apptainer
        directory.mkdir(parents=True, exist_ok=True)

    def resolve(self, name: str, backend: SandboxBackend, lease: Lease) -> ImageRef:
        """Return an image that `backend` can enter, and hold what the cache has of it.

        Raises:
            ImageNotFound: the file is missing or can't be converted; names the remedy.
        """
        scheme, colon, rest = name.partition(":")
        if colon and scheme in _ARCHIVES:
            image = self._convert_archive(name, Path(rest), lease)
        else:
            image = _local(Path(name))
        if image.kind not in backend.image_kinds:
            return self._unpack_sif(image, lease)
        return image

    def _convert_archive(self, name: str, source: Path, lease: Lease) -> ImageRef:
        _must_exist(source)
        program = self._apptainer
        if program is None:
            message = f"{name}: converting it needs Apptainer; give a directory or a SIF"
            raise ImageNotFound(message)
        digest = _tree_digest(source) if source.is_dir() else _file_digest(source)

        def build(target: Path) -> list[str]:
            return [str(program), "--silent", "build", str(target), name]

        return ImageRef("sif", self._once(f"{digest}.sif", build, name, lease), digest)

    def _unpack_sif(self, image: ImageRef, lease: Lease) -> ImageRef:
        unsquashfs = shutil.which("unsquashfs")
        if unsquashfs is None:
            message = f"{image.path}: unpacking a SIF needs `unsquashfs` (squashfs-tools)"
            raise ImageNotFound(message)
        offset = str(_squashfs_offset(image.path))

        def unpack(target: Path) -> list[str]:
            quiet = ["-no-progress", "-quiet", "-no-xattrs", "-processors", "2"]
            where = ["-offset", offset, "-dest", str(target)]
            return [unsquashfs, *quiet, *where, str(image.path)]

        path = self._once(image.digest, unpack, str(image.path), lease)
        return ImageRef("directory", path, image.digest)

    def _once(
        self, key: str, command: Callable[[Path], list[str]], name: str, lease: Lease
    ) -> Path:
        target = self._directory / key
        lease.hold(target)
        with (self._directory / f".{key}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if target.exists():
                return target
            scratch = Path(tempfile.mkdtemp(dir=self._directory, prefix=".converting-"))
            try:
                argv = command(scratch / "image")
                done = subprocess.run(argv, capture_output=True, text=True, check=False)
                if done.returncode != 0:
                    message = f"{name}: `{argv[0]}` failed: {done.stderr.strip()[-1000:]}"
                    raise ImageNotFound(message)
                (scratch / "image").rename(target)
            finally:
                remove_tree(scratch)
        return target


def _local(path: Path) -> ImageRef:
    _must_exist(path)
    path = path.resolve()
    kind: Literal["directory", "sif"] = "directory" if path.is_dir() else "sif"
    return ImageRef(kind, path, hashlib.sha256(repr(_identity(path)).encode()).hexdigest())


def _identity(path: Path) -> tuple[str, int, int, int]:
    status = path.stat()
    return str(path), status.st_ino, status.st_size, status.st_mtime_ns


def _must_exist(path: Path) -> None:
    if not path.is_absolute() or not path.exists():
        message = (
            f"image {path}: no such file or directory on {os.uname().nodename}; give the absolute "
            f"path of a SIF or a root file system directory, or {', '.join(_ARCHIVES)}: and a path"
        )
        raise ImageNotFound(message)


def _file_digest(path: Path) -> str:
    return _digest_once(_identity(path))


@functools.lru_cache(maxsize=1024)
def _digest_once(identity: tuple[str, int, int, int]) -> str:
    """Hash a file of several gigabytes once per process, not at each start."""
    with Path(identity[0]).open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest()


def _tree_digest(path: Path) -> str:
    digest = hashlib.sha256()
    for file in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(f"{file.relative_to(path)} {_file_digest(file)}\n".encode())
    return digest.hexdigest()


def _squashfs_offset(path: Path) -> int:
    """Return where the file system starts in a SIF: at its first aligned squashfs superblock."""
    with path.open("rb") as source:
        for offset in range(0, 1 << 20, 4096):
            source.seek(offset)
            if source.read(4) == b"hsqs":
                return offset
    message = f"{path} is not a SIF with a squashfs file system"
    raise ImageNotFound(message)
