"""The cache: versioned entries that are either complete or absent, whoever is killed when.

    ROOT/store/NAME-VERSION   what a component built; made beside and renamed into place
    ROOT/bin, models, images  stable names: links into the store
    ROOT/locks, logs          one file per component

A lock file per entry makes two set-ups at once safe: the second waits and finds the entry there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hack.setup.errors import SetupError

_CHOOSE = "choose a folder you may write with ROLLOUT_CACHE"


def default_root() -> Path:
    """Return `$ROLLOUT_CACHE`, else `rollout-operator` in the user's cache folder."""
    if chosen := os.environ.get("ROLLOUT_CACHE"):
        return Path(chosen).absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches).absolute() / "rollout-operator"


def digest(*parts: str | bytes) -> str:
    """Return a short name for the inputs of an entry, so that a changed recipe is built anew."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()[:8]


@dataclass(frozen=True)
class Store:
    """The cache below `root`."""

    root: Path

    @contextmanager
    def lock(self, name: str, on_wait: Callable[[], None]) -> Iterator[None]:
        """Hold the lock `name`; calls `on_wait` once when another set-up holds it."""
        folder = self._folder("locks")
        with (folder / f"{name}.lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                on_wait()
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def check(self) -> None:
        """Make sure that the cache can be written.

        Raises:
            SetupError: It cannot.
        """
        for kind in ("locks", "logs", "store"):
            if not os.access(self._folder(kind), os.W_OK):
                raise SetupError(f"{self.root} is not yours to write; {_CHOOSE}")

    def entry(self, name: str) -> Path:
        """Return where the entry `name` is, or will be."""
        return self.root / "store" / name

    @contextmanager
    def staged(self, name: str) -> Iterator[Path]:
        """Yield an empty folder that becomes the entry `name` when the body succeeds.

        The caller holds the entry's lock, so folders that an earlier, killed set-up left are swept.
        """
        final = self._folder("store") / name
        for stale in final.parent.glob(f".{name}.*"):
            shutil.rmtree(stale, ignore_errors=True)
        folder = final.with_name(f".{name}.{os.getpid()}")
        folder.mkdir()
        try:
            yield folder
            folder.rename(final)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def link(self, kind: str, name: str, target: Path) -> Path:
        """Point the stable name `kind/name` at `target`, in one step."""
        path = self._folder(kind) / name
        inside = target.is_relative_to(self.root)
        wanted = Path(os.path.relpath(target, path.parent)) if inside else target
        if path.is_symlink() and path.readlink() == wanted:
            return path
        fresh = path.with_name(f".{name}.{os.getpid()}")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(wanted)
        fresh.replace(path)
        return path

    def _folder(self, kind: str) -> Path:
        folder = self.root / kind
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SetupError(f"cannot make {folder}: {error.strerror}; {_CHOOSE}") from error
        return folder
