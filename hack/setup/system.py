"""The distribution's packages that the other components call, installed only where missing.

Each package is known by something that it provides, so that a machine which has the tools
from elsewhere needs no package manager.
"""

from __future__ import annotations

import ctypes.util
import importlib.util
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hack.setup.component import Component, Session
from hack.setup.errors import SetupError
from hack.setup.shell import as_root, output

FUSE = Path("/dev/fuse")


@dataclass(frozen=True)
class Package:
    """A Debian package and the command, library or file by which its presence is known."""

    name: str
    command: str = ""
    library: str = ""
    file: str = ""

    def present(self) -> bool:
        """Tell whether the machine has what this package provides."""
        if self.command:
            return shutil.which(self.command) is not None
        if self.library:
            return ctypes.util.find_library(self.library) is not None
        return Path(self.file).exists()


PACKAGES = (
    Package("git", command="git"),
    Package("make", command="make"),
    Package("ca-certificates", file="/etc/ssl/certs/ca-certificates.crt"),
    Package("bubblewrap", command="bwrap"),
    Package("squashfs-tools", command="mksquashfs"),
    Package("squashfuse", command="squashfuse"),
    Package("fuse3", command="fusermount3"),
    Package("fuse-overlayfs", command="fuse-overlayfs"),
    Package("fuse2fs", command="fuse2fs"),
    Package("uidmap", command="newuidmap"),
    Package("libseccomp2", library="seccomp"),
    Package("libsqlite3-0", library="sqlite3"),
    Package("mmdebstrap", command="mmdebstrap"),
    Package("debian-archive-keyring", file="/usr/share/keyrings/debian-archive-keyring.gpg"),
)


def missing_packages(packages: Sequence[Package]) -> list[str]:
    """Return the names of those of `packages` whose parts this machine lacks."""
    return [package.name for package in packages if not package.present()]


def _missing_base() -> list[str]:
    names = missing_packages(PACKAGES)
    is_debians_python = Path(sys.executable).resolve().parent == Path("/usr/bin")
    if is_debians_python and importlib.util.find_spec("ensurepip") is None:
        names.append(f"python{sys.version_info.major}.{sys.version_info.minor}-venv")
    return names


def _install(session: Session) -> None:
    install_missing(session, _missing_base)


def install_missing(session: Session, missing: Callable[[], list[str]]) -> None:
    """Install the packages that `missing` names, until it names none.

    Raises:
        SetupError: There is no apt-get, it fails, or it does not bring what is missing.
    """
    names = missing()
    if not names:
        session.tell("packages: already there")
        return
    if shutil.which("apt-get") is None:
        raise SetupError(f"no apt-get here: install what {' '.join(names)} provide by hand")
    session.tell(f"packages: installing with apt-get: {' '.join(names)}")
    started = time.monotonic()
    _apt_install(session, names)
    if still := missing():
        raise SetupError(f"apt-get installed them, yet parts are missing of: {' '.join(still)}")
    session.tell(f"packages: ready in {time.monotonic() - started:.0f} s")


def _apt_install(session: Session, names: list[str]) -> None:
    prefix = as_root(f"install {' '.join(names)}")
    apt = [*prefix, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]
    wait = ("-o", "DPkg::Lock::Timeout=300")
    install = [*apt, *wait, "install", "-y", "--no-install-recommends", *names]
    if session.shell.succeeds(*install):
        return
    session.shell.succeeds(*apt, *wait, "update")
    session.shell.run(*install, remedy="check the network and apt's sources")


def _check_isolation(session: Session) -> None:
    if not session.shell.succeeds("unshare", "--user", "--map-root-user", "true"):
        raise SetupError(
            "user namespaces are refused, so no sandbox can start: allow them "
            "(`sysctl kernel.unprivileged_userns_clone=1`; on Ubuntu also "
            "`sysctl kernel.apparmor_restrict_unprivileged_userns=0`)"
        )
    if not FUSE.exists():
        raise SetupError("no /dev/fuse: `modprobe fuse`, or pass the device to this container")
    if os.access(FUSE, os.R_OK | os.W_OK) and stat.S_IMODE(FUSE.stat().st_mode) & 0o006 == 0o006:
        session.tell("user namespaces and /dev/fuse: already there")
        return
    session.tell("/dev/fuse: letting every user mount images (chmod 666)")
    session.shell.run(*as_root("open /dev/fuse to users"), "chmod", "666", FUSE)


def debian_mirror() -> str:
    """Return the Debian mirror that this machine already uses, else Debian's own."""
    sites = output("apt-get", "indextargets", "--no-release-info", "--format", "$(SITE)")
    debian = (site for site in sites.split() if site.rstrip("/").endswith("/debian"))
    return next(debian, "http://deb.debian.org/debian")


def apt_proxy() -> list[str]:
    """Return the apt options that repeat the machine's own proxy for a private apt."""
    value = output("apt-config", "shell", "PROXY", "Acquire::http::Proxy").strip()
    return [f"Acquire::http::Proxy={value.split('=', 1)[1].strip(chr(39))}"] if value else []


SYSTEM = Component("system", "packages of the distribution (apt-get, as root)", _install)
ISOLATION = Component(
    "isolation", "user namespaces and /dev/fuse are usable", _check_isolation, needs=("system",)
)
