"""Pods really run on the node: images without a registry, logs, exec, services, failures."""

import json
import time
from pathlib import Path

import pytest

from hack.kube import ControlPlane, Node
from hack.kube.images import Config
from tests.support.engine import cached

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]
IMAGE = "docker.io/local/busybox:1"


@pytest.fixture(scope="module")
def node(real_cluster: tuple[ControlPlane, Node]) -> Node:
    _, node = real_cluster
    node.load_image(cached("images", "busybox"), IMAGE, Config(env=["FROM=image"]))
    return node


@pytest.fixture
def cluster_plane(real_cluster: tuple[ControlPlane, Node], node: Node) -> ControlPlane:
    return real_cluster[0]


def run(plane: ControlPlane, name: str, script: str, *flags: str) -> None:
    words = ("--restart=Never", "--image-pull-policy=Never", *flags, "--", "sh", "-c", script)
    plane.kubectl("run", name, f"--image={IMAGE}", *words)


def wait(plane: ControlPlane, name: str, what: str) -> None:
    plane.kubectl("wait", f"pod/{name}", f"--for={what}", "--timeout=60s", timeout_s=70)


def ended(plane: ControlPlane, name: str) -> int:
    status = json.loads(plane.kubectl("get", "pod", name, "--output=json"))["status"]
    code: int = status["containerStatuses"][0]["state"]["terminated"]["exitCode"]
    return code


def test_a_pod_runs_from_an_image_that_was_made_here(cluster_plane: ControlPlane) -> None:
    run(cluster_plane, "hello", "echo $FROM; exit 7")
    wait(cluster_plane, "hello", "jsonpath={.status.phase}=Failed")
    assert cluster_plane.kubectl("logs", "hello") == "image\n"
    assert ended(cluster_plane, "hello") == 7


def test_commands_run_in_it_and_a_service_leads_to_it(cluster_plane: ControlPlane) -> None:
    serve = "mkdir /w; echo served > /w/index.html; exec httpd -f -p 8080 -h /w"
    run(cluster_plane, "web", serve, "--port=8080", "--expose")
    wait(cluster_plane, "web", "condition=Ready")
    assert cluster_plane.kubectl("exec", "web", "--", "cat", "/w/index.html") == "served\n"
    service = json.loads(cluster_plane.kubectl("get", "service", "web", "--output=json"))
    address = service["spec"]["clusterIP"]
    ask = f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {address} 8080"
    run(cluster_plane, "asker", f"until {ask} | grep served; do sleep 0.2; done")
    wait(cluster_plane, "asker", "jsonpath={.status.phase}=Succeeded")
    assert "served" in cluster_plane.kubectl("logs", "asker")


def test_a_pod_has_no_way_out(cluster_plane: ControlPlane) -> None:
    run(cluster_plane, "caged", "nc -w 5 198.51.100.9 80")
    wait(cluster_plane, "caged", "jsonpath={.status.phase}=Failed")
    assert "unreachable" in cluster_plane.kubectl("logs", "caged")


def test_memory_beyond_the_limit_is_told_as_such(cluster_plane: ControlPlane) -> None:
    limits = '{"limits":{"memory":"16Mi"}}'
    container = f'{{"name":"big","image":"{IMAGE}","resources":{limits}}}'
    container = container.replace("}}}", '}},"command":["sh","-c","x=$(yes)"]}')
    run(cluster_plane, "big", "", f'--overrides={{"spec":{{"containers":[{container}]}}}}')
    wait(cluster_plane, "big", "jsonpath={.status.phase}=Failed")
    status = cluster_plane.kubectl("get", "pod", "big", "--output=json")
    assert '"OOMKilled"' in status


def test_a_node_whose_kubelet_is_killed_comes_back(cluster_plane: ControlPlane, node: Node) -> None:
    run(cluster_plane, "stays", "sleep 600")
    wait(cluster_plane, "stays", "condition=Ready")
    before = cluster_plane.kubectl("get", "pod", "stays", "-o=jsonpath={.status.containerStatuses}")
    node.kill("kubelet")
    node.start("kubelet")
    time.sleep(3)  # one round of its status, so that Ready below is the new kubelet's word
    node.wait_ready()
    after = cluster_plane.kubectl("get", "pod", "stays", "-o=jsonpath={.status.containerStatuses}")
    assert json.loads(after)[0]["containerID"] == json.loads(before)[0]["containerID"]


def test_machine_wide_settings_are_left_alone(node: Node) -> None:
    assert node.machine.run("cat", "/proc/sys/kernel/panic") == "10\n"
    assert Path("/proc/sys/kernel/panic").read_text() != "10\n"
