"""One control plane with a played node, one gateway and one operator for these tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.kube import ControlPlane, scratch
from tests.integration.kube_operator.system import ROOT, KubeSystem, make_pool, wait_for
from tests.support.cluster import plane
from tests.support.stub_llm import stub_llm

__all__ = ["plane"]
_PLAY = "import sys, pathlib; from hack.kube.fake_kubelet import run_nodes; "


@pytest.fixture(scope="session")
def played_node(plane: ControlPlane) -> Iterator[None]:
    command = f"{_PLAY} run_nodes(pathlib.Path(sys.argv[1]), 1)"
    player = subprocess.Popen([sys.executable, "-c", command, plane.kubeconfig], cwd=ROOT)
    try:
        wait_for(lambda: "fake-0" in plane.kubectl("get", "nodes"), "the played node")
        yield
    finally:
        player.kill()
        player.wait()


@pytest.fixture(scope="session")
def system(plane: ControlPlane, played_node: None) -> Iterator[KubeSystem]:
    with scratch() as folder, plane.http() as api, stub_llm() as llm:
        Path(folder).mkdir(exist_ok=True, parents=True)
        running = KubeSystem(plane, api, folder)
        try:
            running.install()
            running.start_gateway()
            running.apply(make_pool(llm.url))
            running.start_operator()
            wait_for(
                lambda: running.condition("llmpools", "model", "Ready")[0] == "True",
                "the LLMPool to be ready",
            )
            yield running
        finally:
            running.close()


@pytest.fixture(autouse=True)
def _tell(request: pytest.FixtureRequest, system: KubeSystem) -> Iterator[None]:
    """Show the operator's log when a test fails, and leave no job behind."""
    yield
    print(system.log()[-6000:])
    if not system.operators:
        system.start_operator()
    for job in system.items("rolloutjobs"):
        system.delete("rolloutjobs", job["metadata"]["name"])
    wait_for(lambda: not system.items("rolloutjobs"), "the jobs to go", 60)
    wait_for(lambda: not system.items("pods"), "the pods to go", 60)
