"""Tars of declared paths, made from and unpacked among files that an agent may have laid as traps.

Only regular files, directories and symlinks are packed. An unpacked member must lie at or below a
declared path, and the directory it goes to must really be where its name says: no member is written
through a symlink.
"""

import os
import stat
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import IO

from ..refusals import Code, Refusal


def pack(paths: Sequence[str], target: IO[bytes], max_bytes: int) -> None:
    """Write a tar of `paths` to `target`; names are absolute paths without the leading slash.

    Raises:
        Refusal: a path does not exist, is not absolute, or the content is over `max_bytes`.
    """
    total = 0
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in _walk(normal_paths(paths)):
            info = tar.gettarinfo(path, arcname=str(path)[1:])
            if not (info.isreg() or info.isdir() or info.issym()):
                continue
            total += info.size + 512
            if total > max_bytes:
                raise Refusal(Code.TOO_LARGE, f"the paths hold more than {max_bytes} bytes")
            _add(tar, info, path)


def _add(tar: tarfile.TarFile, info: tarfile.TarInfo, path: Path) -> None:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if not info.isreg():
        tar.addfile(info)
        return
    with open_regular(path) as source:
        info.size = min(info.size, os.fstat(source.fileno()).st_size)
        tar.addfile(info, source)


def _walk(roots: Iterable[PurePosixPath]) -> Iterator[Path]:
    for root in map(Path, roots):
        if not os.path.lexists(root):
            raise Refusal(Code.PATH_NOT_FOUND, f"{root}: no such file or directory")
        yield root
        if root.is_dir() and not root.is_symlink():
            for parent, directories, files in os.walk(root):
                for name in sorted([*directories, *files]):
                    yield Path(parent, name)


def normal_paths(paths: Iterable[str]) -> list[PurePosixPath]:
    """Return absolute paths without `.` and `..`.

    Raises:
        Refusal: a path is relative, holds `..`, or is `/`.
    """
    normal: list[PurePosixPath] = []
    for text in paths:
        path = PurePosixPath(text)
        if not path.is_absolute() or ".." in path.parts or len(path.parts) == 1:
            raise Refusal(Code.INVALID_REQUEST, f"{text!r} is not an absolute path without `..`")
        normal.append(path)
    return normal


def unpack(source: IO[bytes], declared: Sequence[str], root: Path = Path("/")) -> None:
    """Unpack a tar made by `pack` below `root`.

    Raises:
        Refusal: a member is of another kind, lies outside the declared paths, would be written
            through a symlink, or the archive is damaged.
    """
    allowed = normal_paths(declared)
    try:
        with tarfile.open(fileobj=source, mode="r|") as tar:
            for member in tar:
                _unpack_member(tar, member, _target(member, allowed, root))
    except (tarfile.TarError, EOFError) as error:
        raise Refusal(Code.INVALID_REQUEST, f"the archive is damaged: {error}") from error


def _target(member: tarfile.TarInfo, allowed: list[PurePosixPath], root: Path) -> Path:
    (path,) = normal_paths([f"/{member.name}"])
    if not any(path.is_relative_to(place) for place in allowed):
        raise Refusal(Code.PATH_REFUSED, f"{path} lies outside the declared paths")
    target = root / str(path)[1:]
    real_parent = Path(os.path.realpath(target.parent))
    declared_itself = path in allowed
    if not declared_itself and real_parent != Path(os.path.realpath(root)) / str(path.parent)[1:]:
        raise Refusal(Code.PATH_REFUSED, f"{path} would be written through a symlink")
    return target


def _unpack_member(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if member.isdir():
        if target.is_symlink():
            raise Refusal(Code.PATH_REFUSED, f"/{member.name} is a symlink here")
        target.mkdir(exist_ok=True)
        target.chmod(stat.S_IMODE(member.mode) | stat.S_IRWXU)
        return
    if target.is_symlink() or target.is_file():
        target.unlink()
    if member.issym():
        target.symlink_to(member.linkname)
    elif member.isreg():
        _write_member(tar, member, target)
    else:
        raise Refusal(Code.PATH_REFUSED, f"/{member.name} is neither file, directory nor symlink")


def _write_member(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    content = tar.extractfile(member)
    assert content is not None  # noqa: S101 - a regular member has content
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as out:
        while chunk := content.read(1 << 20):
            out.write(chunk)
        os.fchmod(out.fileno(), stat.S_IMODE(member.mode))


def open_regular(path: Path) -> IO[bytes]:
    """Open a regular file for reading without waiting on a FIFO or a device.

    Raises:
        Refusal: it is missing, not a regular file, or may not be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise Refusal(Code.PATH_NOT_FOUND, f"{path}: no such file") from error
    except OSError as error:
        raise Refusal(Code.PATH_REFUSED, f"{path}: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Refusal(Code.PATH_REFUSED, f"{path} is not a regular file")
    return os.fdopen(descriptor, "rb")
