"""What this machine can do for sandboxes, found by doing it, and which backend to use."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .backends.apptainer import Apptainer
from .backends.bubblewrap import Bubblewrap
from .errors import SandboxUnavailable
from .paths import cache_root
from .ports import SandboxBackend
from .trees import remove_tree

_SECONDS = 20.0
# Overlays by fuse-overlayfs; nothing of the host is bound, no file of the image is rewritten.
_APPTAINER_CONF = """\
enable overlay = driver
enable underlay = no
allow setuid = no
mount home = no
mount hostfs = no
mount sys = no
mount dev = minimal
mount tmp = yes
config passwd = no
config group = no
config resolv_conf = no
"""


@dataclass(frozen=True)
class Capability:
    """One thing a backend needs, and why it is missing."""

    name: str
    available: bool
    reason: str


def apptainer_program() -> Path | None:
    """Return Apptainer's program from PATH or from this package's cache."""
    found = shutil.which("apptainer")
    cached = cache_root() / "bin" / "apptainer"
    return Path(found) if found else cached if cached.exists() else None


def probe(root: Path) -> list[Capability]:
    """Try everything that the backends need; overlays are tried in `root`."""
    program = apptainer_program()
    apptainer = [str(program), "version"] if program else ["apptainer", "version"]
    fuse = os.access("/dev/fuse", os.R_OK | os.W_OK)
    return [
        _try("user-namespaces", ["unshare", "--user", "--map-root-user", "--mount", "true"]),
        _overlay(root),
        _try("bubblewrap", ["bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"]),
        _try("apptainer", apptainer),
        Capability("fuse", fuse, "" if fuse else "/dev/fuse is missing or may not be opened"),
        _try("fuse-overlayfs", ["fuse-overlayfs", "--version"]),
    ]


_NEEDS = {
    "apptainer": ("user-namespaces", "apptainer", "fuse", "fuse-overlayfs"),
    "bubblewrap": ("user-namespaces", "kernel-overlay", "bubblewrap"),
}


def choose(capabilities: Sequence[Capability], wanted: str | None) -> str:
    """Return the backend to use: the wanted one, or the first that can work.

    Raises:
        SandboxUnavailable: none can work; the message tells what each lacks.
    """
    missing = {c.name: c.reason for c in capabilities if not c.available}
    candidates = [wanted] if wanted else list(_NEEDS)
    problems: list[str] = []
    for name in candidates:
        if name not in _NEEDS:
            message = f"unknown sandbox backend {name!r}; known: {', '.join(_NEEDS)}"
            raise SandboxUnavailable(message)
        lacking = [f"{need} ({missing[need]})" for need in _NEEDS[name] if need in missing]
        if not lacking:
            return name
        problems.append(f"{name} lacks {', '.join(lacking)}")
    raise SandboxUnavailable("no sandbox backend works here: " + "; ".join(problems))


def make_backend(name: str, root: Path) -> SandboxBackend:
    """Return the backend `name`, which `choose` found to work."""
    program = apptainer_program()
    if name == "bubblewrap" or program is None:
        return Bubblewrap()
    config = root / "apptainer.conf"
    scratch = root / f".apptainer.conf.{os.getpid()}"
    scratch.write_text(_APPTAINER_CONF)
    scratch.replace(config)
    return Apptainer(program, config, root=os.geteuid() == 0)


def _overlay(root: Path) -> Capability:
    place = Path(tempfile.mkdtemp(dir=root, prefix=".probe-"))
    try:
        for name in ("lower", "upper", "work", "merged"):
            (place / name).mkdir()
        options = "lowerdir=lower,upperdir=upper,workdir=work,userxattr"
        mount = f"cd {place} && mount -t overlay overlay -o {options} merged && touch merged/x"
        return _try(
            "kernel-overlay",
            ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount],
        )
    finally:
        remove_tree(place)


def _try(name: str, argv: list[str]) -> Capability:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=_SECONDS)
    except FileNotFoundError:
        return Capability(name, available=False, reason=f"`{argv[0]}` is not installed")
    except subprocess.TimeoutExpired:
        return Capability(name, available=False, reason=f"`{argv[0]}` hangs")
    if done.returncode == 0:
        return Capability(name, available=True, reason="")
    text = done.stderr.strip().splitlines()
    reason = text[-1] if text else f"exit code {done.returncode}"
    return Capability(name, available=False, reason=f"`{argv[0]}`: {reason}")
