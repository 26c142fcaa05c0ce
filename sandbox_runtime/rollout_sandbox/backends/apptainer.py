"""Enters a SIF or a directory image with Apptainer, as the plain user or root, without setuid.

Overlays go through fuse-overlayfs (`enable overlay = driver`): the kernel's overlay as Apptainer
mounts it answers EIO when a directory of the image is deleted. For a plain user fuse-overlayfs
sets the owner's read and write bits in what it stores: a committed `0444` comes back as `0644`.
"""

from collections.abc import Sequence
from pathlib import Path

from ..ports import KERNEL_SETTINGS, RUN_MOUNT, RUNTIME_MOUNT, Entry, Launch

# Not by the program `fakeroot`, which needs itself and a libc of its kind in the image.
_ROOT_OF_A_NAMESPACE = ("--fakeroot", "--ignore-fakeroot-command")


class Apptainer:
    """The backend of choice."""

    name = "apptainer"
    image_kinds = frozenset({"directory", "sif"})

    def __init__(self, program: Path, config: Path, *, root: bool) -> None:
        self._program = program
        self._config = config
        # Root needs no map of its own id to root, and has no subordinate ids to make one.
        self._root = root

    def launch(self, entry: Entry, server: Sequence[str]) -> Launch:
        """Describe a sandbox; see `ports.SandboxBackend`."""
        place = entry.place
        argv = [
            *("setpriv", "--pdeathsig", "KILL", "--"),
            *(str(self._program), "--silent", "--config", str(self._config), "exec"),
            *(("--userns",) if self._root else _ROOT_OF_A_NAMESPACE),
            *("--pid", "--ipc"),
            *("--net", "--network", "none"),
            *("--containall", "--no-home", "--no-init", "--cleanenv", "--no-eval"),
            *("--no-mount", "sys,bind-paths"),
            *("--workdir", str(place.scratch)),
            *("--bind", f"{entry.runtime}:{RUNTIME_MOUNT}:ro"),
            *("--bind", f"{place.run}:{RUN_MOUNT}"),
            *(word for place in _kernel_settings() for word in ("--bind", f"{place}:{place}:ro")),
            *(word for layer in entry.layers for word in ("--overlay", f"{layer}:ro")),
            *("--overlay", str(place.overlay)),
            *("--pwd", "/", str(entry.image.path), *server),
        ]
        return Launch(argv=tuple(argv), env=dict(entry.env))


def _kernel_settings() -> list[Path]:
    return [place for name in KERNEL_SETTINGS if (place := Path("/proc", name)).exists()]
