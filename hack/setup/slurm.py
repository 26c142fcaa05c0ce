"""Slurm's daemons and commands, from the distribution's packages.

None runs as a service: `python3 -m hack.slurm up` starts a private cluster of its user.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.setup.component import Component, Session
from hack.setup.shell import as_root
from hack.setup.system import Package, install_missing, missing_packages

PACKAGES = (
    Package("slurmctld", file="/usr/sbin/slurmctld"),
    Package("slurmd", file="/usr/sbin/slurmd"),
    Package("slurmrestd", file="/usr/sbin/slurmrestd"),
    Package("slurm-client", command="sbatch"),
    Package("slurm-wlm-basic-plugins", file="/usr/lib/x86_64-linux-gnu/slurm-wlm/gres_gpu.so"),
    Package("slurm-wlm-jwt-plugin", file="/usr/lib/x86_64-linux-gnu/slurm-wlm/auth_jwt.so"),
    Package("munge", file="/usr/sbin/munged"),
)
_POLICY = Path("/usr/sbin/policy-rc.d")


def missing_programs() -> list[str]:
    """Return the packages of a Slurm cluster that this machine lacks."""
    return missing_packages(PACKAGES)


def _install(session: Session) -> None:
    if not missing_programs():
        session.tell("packages: already there")
        return
    with _services_kept_off(session):
        install_missing(session, missing_programs)


@contextmanager
def _services_kept_off(session: Session) -> Iterator[None]:
    """Keep packages from starting their daemons, as containers do, unless the machine does so."""
    if _POLICY.exists():
        yield
        return
    root = as_root("keep Slurm's services off")
    with tempfile.NamedTemporaryFile("w", suffix=".policy-rc.d") as policy:
        policy.write("#!/bin/sh\nexit 101\n")
        policy.flush()
        session.shell.run(*root, "install", "-m", "755", policy.name, _POLICY)
    try:
        yield
    finally:
        session.shell.run(*root, "rm", "-f", _POLICY)


SLURM = Component("slurm", "Slurm (apt-get, as root)", _install, needs=("system",), default=False)
