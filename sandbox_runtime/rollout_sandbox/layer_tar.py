"""An overlay's upper directory to a tar and back, whichever overlay driver made it.

In the tar, deletions have the form of OCI layers: `.wh.NAME` for a deleted entry, `.wh..wh..opq` in
a directory that hides what is below it. Unpacked, they have the form that both the kernel's overlay
(mounted with `userxattr`) and fuse-overlayfs read: a 0/0 character device, an extended attribute.
Names, modes, times and hard links are kept; owners are not (a sandbox has one user), nor sockets
and other extended attributes.
"""

import os
import stat
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
# fuse-overlayfs leaves these beside the attribute.
_OPAQUE_FILES = frozenset({_OPAQUE, ".wh..opq"})
# Read by both drivers, and not carried along by the kernel's when it copies a directory up.
_OPAQUE_ATTRIBUTE = "user.overlay.opaque"
_OPAQUE_ATTRIBUTES = (_OPAQUE_ATTRIBUTE, "user.fuseoverlayfs.opaque")
# Mount points that starting a sandbox makes; their content never lies in the upper directory.
_LEFT_OUT = frozenset({".rollout"})


class DamagedLayer(Exception):
    """The tar holds what `pack` never writes."""


def pack(upper: Path, target: IO[bytes]) -> None:
    """Write the content of `upper`, which nothing may change meanwhile."""
    links: dict[int, str] = {}
    with tarfile.open(fileobj=target, mode="w|", format=tarfile.PAX_FORMAT) as tar:
        for path in _walk(upper):
            _pack_one(tar, path, str(path.relative_to(upper)), links)


def _walk(upper: Path) -> Iterator[Path]:
    for parent, directories, files in os.walk(upper):
        at_top = Path(parent) == upper
        directories[:] = sorted(d for d in directories if not (at_top and d in _LEFT_OUT))
        for name in sorted([*directories, *files]):
            yield Path(parent, name)


def _pack_one(tar: tarfile.TarFile, path: Path, name: str, links: dict[int, str]) -> None:
    if path.name in _OPAQUE_FILES:
        return
    status = path.lstat()
    if stat.S_ISCHR(status.st_mode):
        if status.st_rdev == 0:
            tar.addfile(_marker(str(PurePosixPath(name).with_name(_WHITEOUT + path.name))))
        return
    if stat.S_ISSOCK(status.st_mode) or stat.S_ISBLK(status.st_mode):
        return
    info = tar.gettarinfo(path, arcname=name)
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
        first = links.setdefault(status.st_ino, name)
        info.type = tarfile.REGTYPE if first == name else tarfile.LNKTYPE
        info.linkname = "" if first == name else first
        info.size = status.st_size if first == name else 0
    if info.isreg():
        _open_up(path, os.R_OK)
        with path.open("rb") as source:
            tar.addfile(info, source)
        return
    tar.addfile(info)
    if info.isdir():
        _open_up(path, os.R_OK | os.X_OK)
        if _is_opaque(path):
            tar.addfile(_marker(f"{name}/{_OPAQUE}"))


def _open_up(path: Path, needed: int) -> None:
    """Let the owner read what the sandbox's root could read without; the mode is noted by now."""
    if not os.access(path, needed):
        path.chmod(stat.S_IMODE(path.stat().st_mode) | stat.S_IRWXU)


def _marker(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode = 0
    return info


def _is_opaque(path: Path) -> bool:
    if any(os.path.lexists(path / name) for name in _OPAQUE_FILES):
        return True
    for attribute in _OPAQUE_ATTRIBUTES:
        try:
            if os.getxattr(path, attribute, follow_symlinks=False) == b"y":
                return True
        except OSError:
            continue
    return False


def unpack(source: IO[bytes], upper: Path) -> None:
    """Make `upper`, a new directory, from a tar that `pack` wrote.

    Raises:
        DamagedLayer: a member would lie outside `upper` or behind a symlink, or is a device.
    """
    upper.mkdir()
    directories: list[tuple[Path, tarfile.TarInfo]] = []
    try:
        with tarfile.open(fileobj=source, mode="r|") as tar:
            for member in tar:
                _unpack_one(tar, member, upper, directories)
    except (tarfile.TarError, EOFError) as error:
        raise DamagedLayer(str(error)) from error
    for path, member in reversed(directories):
        path.chmod(stat.S_IMODE(member.mode))
        os.utime(path, (member.mtime, member.mtime))


def _unpack_one(
    tar: tarfile.TarFile,
    member: tarfile.TarInfo,
    upper: Path,
    directories: list[tuple[Path, tarfile.TarInfo]],
) -> None:
    path = _inside(upper, member.name)
    if path.name == _OPAQUE:
        os.setxattr(path.parent, _OPAQUE_ATTRIBUTE, b"y")
    elif path.name.startswith(_WHITEOUT):
        os.mknod(path.with_name(path.name.removeprefix(_WHITEOUT)), stat.S_IFCHR | 0o600, 0)
    elif member.isdir():
        path.mkdir(mode=0o700)
        directories.append((path, member))
    elif member.issym():
        path.symlink_to(member.linkname)
        os.utime(path, (member.mtime, member.mtime), follow_symlinks=False)
    elif member.islnk():
        os.link(_inside(upper, member.linkname), path, follow_symlinks=False)
    elif member.isfifo():
        os.mkfifo(path, stat.S_IMODE(member.mode))
    elif member.isreg():
        _unpack_file(tar, member, path)
    else:
        message = f"{member.name} is of a kind that layers do not hold"
        raise DamagedLayer(message)


def _inside(upper: Path, name: str) -> Path:
    parts = PurePosixPath(name).parts
    if not parts or parts[0] == "/" or ".." in parts:
        message = f"{name!r} lies outside the layer"
        raise DamagedLayer(message)
    path = upper.joinpath(*parts)
    if Path(os.path.realpath(path.parent)) != Path(os.path.realpath(upper)).joinpath(*parts[:-1]):
        message = f"{name!r} lies behind a symlink"
        raise DamagedLayer(message)
    return path


def _unpack_file(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    content = tar.extractfile(member)
    assert content is not None  # noqa: S101 - a regular member has content
    with path.open("xb") as out:
        while chunk := content.read(1 << 20):
            out.write(chunk)
    path.chmod(stat.S_IMODE(member.mode))
    os.utime(path, (member.mtime, member.mtime))
