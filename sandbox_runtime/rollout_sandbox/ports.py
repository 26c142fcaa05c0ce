"""What a caller declares about a sandbox, and what a backend must know to start one.

A backend only *describes* how to enter a sandbox (a program and its arguments); starting, talking,
committing and cleaning are the same for all of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

RUNTIME_MOUNT = "/.rollout/runtime"
RUN_MOUNT = "/.rollout/run"
KERNEL_SETTINGS = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "mtrr")
"""What in `/proc` the owner of files there may write, whom no capability is asked of: where the
host's user is root, so is their owner. A backend makes them read-only."""


@dataclass(frozen=True)
class Limits:
    """Bounds of one sandbox.

    Memory and processes are those of the whole sandbox (`server.guard`): over them, all of
    its processes are ended, and the agent is told. Before that, rlimits refuse one process more
    memory or files than that. A sandbox over its disk limit is ended (`LimitExceeded`).
    """

    action_seconds: float = 600.0
    """Longest wall time of one action; a request's own time-out is capped by it."""
    output_bytes: int = 64 * 1024
    """Output kept of one action: its head and its tail."""
    transfer_bytes: int = 256 * 1024 * 1024
    """Largest file or archive read from or written to the sandbox."""
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    disk_bytes: int | None = None
    """What it may write: its layer, `/tmp` and `/var/tmp`; also the largest size of one file."""


@dataclass(frozen=True)
class ImageRef:
    """An image that is present on this node."""

    kind: Literal["directory", "sif"]
    path: Path
    digest: str
    """Names what was made of it in a cache: hash of its path, size and time, or of its content."""


@dataclass(frozen=True)
class SandboxSpec:
    """A sandbox to start: an image, read-only layers over it (lowest first), and its limits."""

    image: str
    layers: tuple[str, ...] = ()
    """Digests of committed layers (see `layers.LayerStore`)."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    workdir: str = "/workspace"
    limits: Limits = field(default_factory=Limits)
    network: Literal["none"] = "none"


@dataclass(frozen=True)
class Place:
    """The directories of one sandbox on the host, all below `root`."""

    root: Path

    @property
    def overlay(self) -> Path:
        """Holds `upper` and `work`, the writable layer."""
        return self.root / "overlay"

    @property
    def upper(self) -> Path:
        """What the sandbox changed."""
        return self.overlay / "upper"

    @property
    def merged(self) -> Path:
        """Mount point for backends that mount the overlay themselves."""
        return self.root / "merged"

    @property
    def scratch(self) -> Path:
        """On-disk `/tmp` of the sandbox."""
        return self.root / "scratch"

    @property
    def run(self) -> Path:
        """Bound to `RUN_MOUNT`: scratch of the server inside. The host never opens its files."""
        return self.root / "run"

    @property
    def socket(self) -> Path:
        """Where the host reaches the in-sandbox server; not visible inside."""
        return self.root / "control" / "s"

    @property
    def log(self) -> Path:
        """What the backend and the server printed."""
        return self.root / "log"

    def create(self) -> None:
        """Make all the directories."""
        for path in (self.upper, self.overlay / "work", self.merged, self.run, self.socket.parent):
            path.mkdir(parents=True)
        for path in (self.scratch / "tmp", self.scratch / "var_tmp"):
            path.mkdir(parents=True)
            path.chmod(0o1777)


@dataclass(frozen=True)
class Launch:
    """A program that becomes the sandbox; it must die with its parent."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True)
class Entry:
    """All that a backend needs to describe how to enter one sandbox."""

    image: ImageRef
    layers: tuple[Path, ...]
    """Layer directories, lowest first; each holds `upper`."""
    place: Place
    runtime: Path
    env: Mapping[str, str]


class SandboxBackend(Protocol):
    """One way to enter a sandbox."""

    @property
    def name(self) -> str:
        """Short name, as in `SandboxManager(backend=...)`."""
        ...

    @property
    def image_kinds(self) -> frozenset[str]:
        """Kinds of `ImageRef` it enters as they are."""
        ...

    def launch(self, entry: Entry, server: Sequence[str]) -> Launch:
        """Return the program that runs `server` as process 1 of the sandbox.

        Inherited file descriptors must reach `server`.
        """
        ...
