"""Rootless Apptainer in a prefix of its own, from Debian sid's package.

Stable Debian has none. Debian builds Apptainer without setuid, so it finds its parts relative to
itself; sid is read through a private apt state and the machine's own packages stay as they are.
A machine that already has `apptainer` on its PATH keeps using that.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hack.setup.component import Component, Session
from hack.setup.elf import lower_glibc_need
from hack.setup.errors import SetupError
from hack.setup.shell import output
from hack.setup.system import apt_proxy, debian_mirror

VERSION = "1.4.5-2"
_KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"


class PrivateApt:
    """apt with sources and state below one folder: nothing of the machine's apt is touched."""

    def __init__(self, session: Session, folder: Path, suite: str) -> None:
        self._session = session
        self.folder = folder
        for part in ("lists/partial", "cache/archives/partial"):
            (folder / part).mkdir(parents=True)
        sources = folder / "sources.list"
        sources.write_text(f"deb [signed-by={_KEYRING}] {debian_mirror()} {suite} main\n")
        settings = [
            f"Dir::Etc::sourcelist={sources}",
            "Dir::Etc::sourceparts=-",
            f"Dir::State::lists={folder}/lists",
            f"Dir::Cache={folder}/cache",
            "Acquire::Languages=none",
            "Acquire::Check-Valid-Until=false",
            "Acquire::Retries=3",
            "APT::Sandbox::User=",
            *apt_proxy(),
        ]
        self._apt = ["apt-get", *(word for value in settings for word in ("-o", value))]
        session.shell.run(*self._apt, "update", remedy="check the network and apt's mirror")

    def unpack(self, package: str, target: Path) -> None:
        """Download a package and unpack it below `target`."""
        fetched = self.folder / "fetched"
        fetched.mkdir()
        self._session.shell.run(*self._apt, "download", package, cwd=fetched)
        (archive,) = fetched.glob("*.deb")
        self._session.shell.run("dpkg-deb", "-x", archive, target)
        shutil.rmtree(fetched)

    def has(self, package: str, version: str) -> bool:
        """Tell whether the suite offers exactly this version."""
        return self._session.shell.succeeds(
            *self._apt, "download", "--print-uris", f"{package}={version}"
        )


def find_on_path(own: Path) -> str | None:
    """Return the machine's own `apptainer`, leaving out the one that set-up made."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    others = [folder for folder in folders if Path(folder).absolute() != own]
    return shutil.which("apptainer", path=os.pathsep.join(others))


def _install(session: Session) -> None:
    if found := find_on_path(session.store.root / "bin"):
        session.tell(f"Apptainer: already there ({found})")
        return
    if os.uname().machine != "x86_64":
        raise SetupError("Apptainer is only packaged for x86_64 here: install it by hand")
    entry = session.provide(
        f"apptainer-{VERSION}", f"Apptainer {VERSION}", lambda folder: _build(session, folder)
    )
    session.store.link("bin", "apptainer", entry / "bin" / "apptainer")


def _build(session: Session, prefix: Path) -> None:
    work = prefix / "work"
    work.mkdir()
    apt = PrivateApt(session, work / "apt", "sid")
    if apt.has("apptainer", VERSION):
        apt.unpack(f"apptainer={VERSION}", work / "root")
    else:
        session.tell(f"Debian sid no longer has Apptainer {VERSION}: taking its present version")
        apt.unpack("apptainer", work / "root")
    root = work / "root"
    libexec = root / "usr/lib/x86_64-linux-gnu/apptainer"
    for part in (
        root / "usr/bin/apptainer",
        libexec / "bin/starter",
        libexec / "lib/offsetpreload.so",
    ):
        _make_loadable(part)
    for part in (root / "usr/bin", root / "usr/lib", root / "etc", root / "var"):
        part.rename(prefix / part.name)
    # The starter looks for these beside Debian's multiarch folder, wherever the prefix is.
    for name in ("bin", "etc", "var"):
        (prefix / "lib" / name).symlink_to(f"../{name}")
    shutil.rmtree(work)
    if not output(prefix / "bin" / "apptainer", "version"):
        raise SetupError("Apptainer does not start; `apptainer version` in the log tells why")


def _make_loadable(path: Path) -> None:
    try:
        lower_glibc_need(path)
    except ValueError as error:
        raise SetupError(f"{path.name} of Debian sid does not fit this system: {error}") from error


APPTAINER = Component("apptainer", f"Apptainer {VERSION}, rootless", _install, needs=("system",))
