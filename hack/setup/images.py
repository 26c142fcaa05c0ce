"""Sandbox images made from Debian packages, without a registry or a container engine.

Each comes as a folder (`images/NAME`) and as one file (`images/NAME.sif`); both belong to the user
who runs set-up and are readable by all, so that sandboxes of any user can start from them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from hack.setup.apptainer import PrivateApt, find_on_path
from hack.setup.component import Component, Session
from hack.setup.shell import output
from hack.setup.store import digest
from hack.setup.system import apt_proxy, debian_mirror

SUITE = "bookworm"
PYTHON_PACKAGES = ("python3", "python3-pytest", "git", "ca-certificates")
_SHARE_LEFT_OUT = ("doc", "man", "info", "locale", "lintian", "bug", "gitweb")
_FOLDERS = ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "usr/bin", "var/tmp")


def _provide(session: Session, image: str, fill: Callable[[Session, Path, Path], None]) -> None:
    def build(folder: Path) -> None:
        root = folder / "root"
        work = folder / "work"
        root.mkdir()
        work.mkdir()
        fill(session, work, root)
        # Set-user-id programs are of no use in a sandbox; unreadable files break other users.
        session.shell.run("chmod", "-R", "a+rX,u+w,u-s,g-s", root)
        _pack(session, folder, root, image)
        session.shell.run("rm", "-rf", root, work)

    recipe = digest(Path(__file__).read_bytes())
    name = f"image-{image}-{SUITE}-{recipe}"
    entry = session.provide(name, f"image {image}", build)
    session.store.link("images", image, entry / image)
    session.store.link("images", f"{image}.sif", entry / f"{image}.sif")


def _pack(session: Session, folder: Path, root: Path, image: str) -> None:
    own = session.store.root / "bin"
    apptainer = find_on_path(own) or own / "apptainer"
    build = (apptainer, "--silent", "build")
    fast = ("--mksquashfs-args", "-comp zstd -Xcompression-level 1")
    session.shell.run(*build, *fast, folder / f"{image}.sif", root)
    session.shell.run(*build, "--sandbox", folder / image, root)


def _fill_python(session: Session, work: Path, root: Path) -> None:
    archive = work / "root.tar"
    options = [f"--aptopt={option}" for option in apt_proxy()]
    options += [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _SHARE_LEFT_OUT]
    session.shell.run(
        *("mmdebstrap", "--variant=minbase", f"--include={','.join(PYTHON_PACKAGES)}", *options),
        *(f"--mode={'root' if os.geteuid() == 0 else 'unshare'}", SUITE, archive, debian_mirror()),
        env={"TMPDIR": str(work)} if os.geteuid() == 0 else {},
        remedy="check apt's mirror, and as a plain user your ranges in /etc/subuid and /etc/subgid",
    )
    session.shell.run(
        *("tar", "--extract", "--no-same-owner", "--exclude=./dev/*"),
        *("--exclude=./var/cache/apt/*", "--exclude=./var/lib/apt/lists/*"),
        *("--exclude=./etc/apt/apt.conf.d/99mmdebstrap", "--directory", root, "--file", archive),
    )


def _fill_busybox(session: Session, work: Path, root: Path) -> None:
    apt = PrivateApt(session, work / "apt", SUITE)
    apt.unpack("busybox-static", work / "package")
    for name in _FOLDERS:
        (root / name).mkdir(parents=True)
    busybox = root / "bin" / "busybox"
    shutil.copy2(work / "package" / "bin" / "busybox", busybox)
    for applet in output(busybox, "--list-full").split():
        link = root / applet
        if link.parent.is_dir() and not link.exists():
            link.symlink_to(f"{'../' * applet.count('/')}bin/busybox")
    (root / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    # Apptainer binds the machine's own files over these.
    for name in ("hosts", "localtime", "resolv.conf"):
        (root / "etc" / name).touch()
    (root / "tmp").chmod(0o1777)
    (root / "var/tmp").chmod(0o1777)


def _install_python(session: Session) -> None:
    _provide(session, "python", _fill_python)


def _install_busybox(session: Session) -> None:
    _provide(session, "busybox", _fill_busybox)


PYTHON_IMAGE = Component(
    "image-python", "sandbox image with Python, pytest and git", _install_python, ("apptainer",)
)
BUSYBOX_IMAGE = Component(
    "image-busybox", "smallest sandbox image: a shell", _install_busybox, ("apptainer",)
)
