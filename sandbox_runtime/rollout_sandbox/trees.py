"""Removes directory trees that a sandbox left, whatever their modes and owners."""

import os
import shutil
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path


def remove_tree(path: Path) -> None:
    """Remove a tree; what is missing does not matter.

    Directories without permissions (an overlay's work directory) are opened up first; files of
    subordinate ids are removed as root of a user namespace that maps them.

    Raises:
        OSError: something is left, such as a mount point in use.
    """
    if not os.path.lexists(path):
        return
    shutil.rmtree(path, onerror=_open_up)
    if path.exists():
        mapped = ["unshare", "--map-root-user", "--map-auto", "rm", "-rf", "--", str(path)]
        subprocess.run(mapped, check=False, capture_output=True)
    if path.exists():
        shutil.rmtree(path)


def _open_up(function: Callable[..., object], name: str, _: object) -> None:
    """Give the owner all rights on a directory that could not be entered, and try again."""
    target = Path(name)
    try:
        target.parent.chmod(stat.S_IRWXU)
        if target.is_dir() and not target.is_symlink():
            target.chmod(stat.S_IRWXU)
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
    except OSError:
        return
