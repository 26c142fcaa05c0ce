"""Who owns a cluster's folder, and what a killed owner left in it or for it.

The owner holds a lock on the folder, which the kernel takes back when the owner dies. So a folder
whose lock is free is a left-over, and so are the cgroups that are named after it.
"""

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from hack.kube.errors import KubeError

_LOCK = "lock"
_CGROUPS = Path("/sys/fs/cgroup")


def base() -> Path:
    """Return the folder of this user's clusters, which nobody else may look into.

    Raises:
        KubeError: Another user made it.
    """
    folder = Path(tempfile.gettempdir()) / f"rollout-kube-{os.geteuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise KubeError(f"{folder} is not yours: remove it, or set TMPDIR")
    return folder


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a fresh folder for a cluster; it and all left-overs of killed runs are removed."""
    with ExitStack() as stack:
        with (base() / _LOCK).open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for old in base().iterdir():
                if old.is_dir() and owner(old) is None:
                    remove(old)
            folder = Path(tempfile.mkdtemp(prefix="c-", dir=base()))
            stack.enter_context(claimed(folder))
        stack.callback(remove, folder)
        yield folder


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Own the folder for the body; what a killed owner left is removed. May be nested.

    Raises:
        KubeError: Another process owns it.
    """
    if folder in _owned:
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / _LOCK).open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            message = f"{folder} is in use by process {owner(folder)}: choose another folder"
            raise KubeError(message) from error
        _sweep(folder)
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        _owned.add(folder)
        try:
            yield
        finally:
            _owned.discard(folder)


_owned: set[Path] = set()


def owner(folder: Path) -> int | None:
    """Return the process that owns the folder; None when nobody does."""
    try:
        with (folder / _LOCK).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = (folder / _LOCK).read_text()
        return int(text) if text else 0
    except FileNotFoundError:
        return None
    return None


def remove(folder: Path) -> None:
    """Remove a folder and the cgroups that are named after it."""
    remove_cgroups(folder)
    shutil.rmtree(folder, ignore_errors=True)


def _sweep(folder: Path) -> None:
    remove_cgroups(folder)
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def cgroup_name(folder: Path) -> str:
    """Return the name of the cgroup of the node in this folder."""
    return f"rollout-kube-{hashlib.sha256(str(folder.resolve()).encode()).hexdigest()[:12]}"


def cgroup_roots() -> list[Path]:
    """Return the root of each hierarchy: one of version 2, or those of version 1."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [path for path in sorted(_CGROUPS.iterdir()) if (path / "cgroup.procs").exists()]


def remove_cgroups(folder: Path, within_s: float = 5) -> None:
    """Remove the empty cgroups of the node in this folder; killed members need a moment to go.

    Raises:
        KubeError: Something still runs in them.
    """
    deadline = time.monotonic() + within_s
    for root in cgroup_roots():
        top = root / cgroup_name(folder)
        while top.exists():
            for path, _, _ in os.walk(top, topdown=False):
                with suppress(OSError):
                    os.rmdir(path)  # noqa: PTH106 - os.walk yields strings
            if top.exists() and time.monotonic() > deadline:
                raise KubeError(f"something still runs in {top}")
            time.sleep(0 if not top.exists() else 0.05)
