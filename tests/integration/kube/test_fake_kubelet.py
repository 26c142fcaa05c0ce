"""Fake nodes play pods as their annotations say, many at once, and survive the API server."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from hack.kube import ControlPlane
from hack.kube.errors import wait_until

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]
ROOT = Path(__file__).resolve().parents[3]
PLAY = "from hack.kube.fake_kubelet import run_nodes; import pathlib, sys; "
PODS = "/api/v1/namespaces/played/pods"


@pytest.fixture(scope="module")
def nodes(plane: ControlPlane) -> Iterator[None]:
    plane.kubectl("create", "namespace", "played")
    command = f"{PLAY} run_nodes(pathlib.Path(sys.argv[1]), 2)"
    player = subprocess.Popen([sys.executable, "-c", command, plane.kubeconfig], cwd=ROOT)
    try:
        wait_until(lambda: ready(plane) == {"fake-0", "fake-1"}, "two nodes", 30)
        account = ("serviceaccount/default", "--namespace=played")
        plane.kubectl("wait", *account, "--for=create", "--timeout=20s")
        yield
    finally:
        player.kill()
        player.wait()
        plane.kubectl("delete", "namespace", "played", "--wait=false")
        plane.kubectl("delete", "node", "fake-0", "fake-1")


def ready(plane: ControlPlane) -> set[str]:
    condition = '{.status.conditions[?(@.type=="Ready")].status}'
    table = plane.kubectl("get", "nodes", f"-o=custom-columns=N:{{.metadata.name}},R:{condition}")
    return {line.split()[0] for line in table.splitlines() if line.endswith("True")}


def create(api: httpx2.Client, name: str, **annotations: str) -> None:
    wishes = {f"fake-kubelet/{key.replace('_', '-')}": value for key, value in annotations.items()}
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "10m"}}}
    pod = {
        "metadata": {"name": name, "annotations": wishes},
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "tolerations": [{"operator": "Exists"}],
        },
    }
    api.post(PODS, json=pod).raise_for_status()


def phases(api: httpx2.Client) -> dict[str, str]:
    items = api.get(PODS).json()["items"]
    return {pod["metadata"]["name"]: pod["status"]["phase"] for pod in items}


def wait_phase(api: httpx2.Client, name: str, phase: str) -> Any:
    wait_until(lambda: phases(api).get(name) == phase, f"{name} to be {phase}", 20)
    return api.get(f"{PODS}/{name}").json()["status"]


@pytest.mark.usefixtures("nodes")
def test_a_pod_runs_ends_or_waits_as_it_is_told(api: httpx2.Client) -> None:
    create(api, "runs")
    create(api, "succeeds", run_seconds="0.1")
    create(api, "fails", run_seconds="0.1", exit_code="3")
    create(api, "waits", phase="Pending")
    running = wait_phase(api, "runs", "Running")
    assert {c["type"]: c["status"] for c in running["conditions"]}["Ready"] == "True"
    wait_phase(api, "succeeds", "Succeeded")
    failed = wait_phase(api, "fails", "Failed")
    assert failed["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 3
    assert phases(api)["waits"] == "Pending"


@pytest.mark.usefixtures("nodes")
def test_a_deleted_pod_goes_in_any_phase(api: httpx2.Client) -> None:
    create(api, "d-runs")
    create(api, "d-waits", phase="Pending")
    create(api, "d-late", start_seconds="60")
    wait_phase(api, "d-runs", "Running")
    for name in ("d-runs", "d-waits", "d-late"):
        api.delete(f"{PODS}/{name}").raise_for_status()
    wait_until(lambda: not [p for p in phases(api) if p.startswith("d-")], "no pod", 20)


@pytest.mark.usefixtures("nodes")
def test_two_hundred_pods_run_with_three_writes_each(
    plane: ControlPlane, api: httpx2.Client
) -> None:
    names = [f"many-{number}" for number in range(200)]
    for name in names:
        create(api, name)
    wait_until(
        lambda: [phases(api)[name] for name in names].count("Running") == len(names),
        "all to run",
        120,
    )
    writes = [r for r in plane.requests() if r.name in names and r.is_write]
    assert {r.resource for r in writes} == {"pods", "pods/binding", "pods/status"}
    assert len(writes) == 3 * len(names)  # created, bound, running


@pytest.mark.usefixtures("nodes")
def test_it_goes_on_when_the_server_was_restarted(plane: ControlPlane, api: httpx2.Client) -> None:
    create(api, "before", run_seconds="1000")
    wait_phase(api, "before", "Running")
    plane.restart()
    create(api, "after")
    wait_phase(api, "after", "Running")
    api.delete(f"{PODS}/before").raise_for_status()
    wait_until(lambda: "before" not in phases(api), "it to go", 20)
    nodes = json.loads(plane.kubectl("get", "nodes", "--output=json"))["items"]
    assert len(nodes) == 2
