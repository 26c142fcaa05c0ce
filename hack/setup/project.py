"""uv, and the project's own environment `.venv` from the lock file."""

from __future__ import annotations

import importlib.util
import shutil
import sys
import time
from pathlib import Path

from hack.setup.component import REPOSITORY, Component, Session
from hack.setup.errors import SetupError
from hack.setup.shell import output

UV_VERSION = "0.13.9"
# The project runs on the Python that runs set-up, so nothing may fetch another one; the machine's
# own certificates count, as they do for pip and apt.
UV_ENV = {"UV_PYTHON_DOWNLOADS": "never", "UV_SYSTEM_CERTS": "1"}
_SYNC = ("sync", "--frozen", "--all-extras", "--no-extra", "engine")


def find_uv(session: Session) -> Path:
    """Return uv: the machine's own if it runs, else the one that set-up puts into the cache."""
    found = shutil.which("uv")
    is_own = found and Path(found).resolve().is_relative_to(session.store.root.resolve())
    if found and not is_own and output(found, "--version"):
        return Path(found)
    return session.store.entry(f"uv-{UV_VERSION}") / "bin" / "uv"


def _install_uv(session: Session) -> None:
    own = session.store.entry(f"uv-{UV_VERSION}")
    uv = find_uv(session)
    if not uv.is_relative_to(own):
        session.tell(f"uv: already there ({uv})")
        return
    session.provide(own.name, f"uv {UV_VERSION}", lambda folder: _build_uv(session, folder))
    session.store.link("bin", "uv", uv)


def _build_uv(session: Session, folder: Path) -> None:
    if importlib.util.find_spec("ensurepip") is None:
        minor = f"python{sys.version_info.major}.{sys.version_info.minor}"
        raise SetupError(f"{minor} has no venv: install {minor}-venv, or uv itself")
    session.shell.run(sys.executable, "-m", "venv", folder)
    session.shell.run(
        folder / "bin" / "python",
        *("-m", "pip", "install", "--disable-pip-version-check", f"uv=={UV_VERSION}"),
        remedy="check the network and pip's index",
    )


def _sync(session: Session) -> None:
    uv, target = find_uv(session), REPOSITORY / ".venv"
    python = ("--python", sys.executable) if not target.exists() else ()
    with session.store.lock("project", lambda: session.tell("waiting for another set-up")):
        if session.shell.succeeds(uv, *_SYNC, "--check", *_where(), env=UV_ENV):
            session.tell(f"environment: already there ({target})")
            return
        session.tell(f"environment: installing uv.lock into {target}")
        started = time.monotonic()
        session.shell.run(
            *(uv, *_SYNC, *_where(), *python),
            env=UV_ENV,
            remedy="check the network and the package index",
        )
    session.tell(f"environment: ready in {time.monotonic() - started:.0f} s")


def _where() -> tuple[str, ...]:
    return ("--project", str(REPOSITORY))


UV = Component("uv", "the package installer uv, unless it is on the PATH", _install_uv, ("system",))
PROJECT = Component("project", "the project's environment .venv from uv.lock", _sync, ("uv",))
