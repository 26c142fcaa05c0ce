"""Fixtures of a real Kubernetes, started once per test session; import them into a conftest."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from hack.kube import ControlPlane, Node, cluster, control_plane, scratch
from hack.kube.errors import wait_until
from hack.setup.kubernetes import NODE_PACKAGES
from hack.setup.store import default_root
from hack.setup.system import missing_packages
from rollout_crds.base import API_VERSION
from rollout_crds.manifest import APPLICABLE_KINDS
from rollout_crds.resources import KINDS

CRDS = Path(__file__).resolve().parents[2] / "crds"


def require_kubernetes() -> None:
    """Skip the test, telling the remedy, where Kubernetes is not set up."""
    for name in ("kube-apiserver", "etcd", "pause"):
        path = default_root() / "bin" / name
        if not path.exists():
            pytest.skip(f"no {path}: run `make setup-kubernetes`")


def require_node() -> None:
    """Skip the test, telling why, where no real node can be started."""
    require_kubernetes()
    if os.geteuid() != 0:
        pytest.skip("not available here: a real node needs root")
    if names := missing_packages(NODE_PACKAGES):
        pytest.skip(f"no {', '.join(names)}: run `make setup-kubernetes`")


def install_crds(plane: ControlPlane) -> None:
    """Give the API server the project's kinds and wait until it serves and explains them."""
    plane.kubectl("apply", "--server-side", "-f", CRDS)
    plane.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", CRDS)
    group = f"apis/{API_VERSION}"
    kinds = [kind.plural for kind in KINDS if kind.kind in APPLICABLE_KINDS]
    with plane.http() as client:

        def served() -> bool:
            listed = [client.get(f"/{group}/{plural}").status_code for plural in kinds]
            explained = group in client.get("/openapi/v3").json()["paths"]
            return explained and set(listed) == {httpx2.codes.OK}

        wait_until(served, f"{', '.join(kinds)} to be served", within_s=30)


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """The session's control plane, without a node, with the project's kinds."""
    require_kubernetes()
    with scratch() as folder, control_plane(folder, audit=True) as running:
        install_crds(running)
        yield running


@pytest.fixture
def api(plane: ControlPlane) -> Iterator[httpx2.Client]:
    """A client of the session's API server, as administrator."""
    with plane.http() as client:
        yield client


@pytest.fixture(scope="session")
def real_cluster() -> Iterator[tuple[ControlPlane, Node]]:
    """A control plane of its own with one real node, for the session."""
    require_node()
    with scratch() as folder, cluster(folder, audit=True) as running:
        yield running
