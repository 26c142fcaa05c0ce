"""Whatever is killed, and whenever: each job ends as declared and nothing is left over."""

from __future__ import annotations

import os
import random
import subprocess
import time

import pytest

from hack.kube import ControlPlane, control_plane, scratch
from tests.integration.kube_operator.system import BIN, HOME, SPACE, KubeSystem, make_job, wait_for
from tests.integration.kube_operator.test_jobs import play, running

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
KILLS = 20


def lease_holder(system: KubeSystem) -> str:
    path = f"/apis/coordination.k8s.io/v1/namespaces/{HOME}/leases/rollout-operator"
    holder: str = system.api.get(path).raise_for_status().json()["spec"]["holderIdentity"]
    return holder


def test_an_operator_killed_at_any_moment_leaves_nothing_behind(system: KubeSystem) -> None:
    dice = random.Random(4)
    for number in range(KILLS):
        name = f"killed-{number}"
        system.apply(make_job(name))
        if number % 2:
            wait_for(lambda name=name: system.pods_of(name), "its first pod")
            system.delete("rolloutjobs", name)
        time.sleep(dice.uniform(0, 0.4))
        system.kill_operator()
        system.start_operator()
    kept = {f"killed-{number}" for number in range(0, KILLS, 2)}
    wait_for(
        lambda: {job["metadata"]["name"] for job in system.items("rolloutjobs")} == kept,
        "the deleted jobs to go",
    )
    for name in sorted(kept):
        wait_for(lambda name=name: running(system, name), f"the pods of {name}")
        system.delete("rolloutjobs", name)
    wait_for(lambda: not system.items("rolloutjobs"), "all jobs to go")
    wait_for(lambda: not system.items("pods"), "all pods to go", 60)


@pytest.mark.parametrize("state", ["new", "suspended", "running", "finished"])
async def test_a_job_is_deleted_in_each_state(system: KubeSystem, state: str) -> None:
    name = f"deleted-{state}"
    made = system.apply(make_job(name, suspended=state == "suspended"))
    if state == "suspended":
        wait_for(
            lambda: system.condition("rolloutjobs", name, "Suspended")[0] == "True", "suspension"
        )
    elif state != "new":
        wait_for(lambda: running(system, name), "its pods")
    if state == "finished":
        await play(system, made["metadata"]["uid"], 1)
        wait_for(lambda: system.condition("rolloutjobs", name, "Succeeded")[0] == "True", "its end")
    system.delete("rolloutjobs", name)
    wait_for(lambda: system.get("rolloutjobs", name) is None, "its deletion")
    wait_for(lambda: not system.pods_of(name), "its pods to go", 60)


def test_a_restart_of_the_api_server_is_survived(system: KubeSystem, plane: ControlPlane) -> None:
    system.apply(make_job("before"))
    wait_for(lambda: running(system, "before"), "its pods")
    plane.restart()
    system.api.delete(system.path("pods", "before-run-0")).raise_for_status()
    system.apply(make_job("after"))
    wait_for(lambda: running(system, "after"), "the pods of a new job", 60)
    wait_for(lambda: running(system, "before"), "the deleted pod to come back", 60)


def test_of_two_operators_one_works_and_the_other_takes_over(system: KubeSystem) -> None:
    assert lease_holder(system) == "one"
    system.start_operator("two")
    system.apply(make_job("handed-on"))
    wait_for(lambda: running(system, "handed-on"), "its pods")
    assert lease_holder(system) == "one"
    system.kill_operator("one")
    system.delete("pods", "handed-on-run-0")
    wait_for(lambda: lease_holder(system) == "two", "the other to take over")
    wait_for(lambda: running(system, "handed-on"), "its pod to come back")
    system.start_operator("one")
    assert system.stop_operator("two") == 0
    wait_for(lambda: lease_holder(system) == "one", "the Lease to be given back", 5)


def test_a_quota_that_forbids_pods_is_told_and_healed_when_it_goes(system: KubeSystem) -> None:
    system.plane.kubectl("create", "quota", "none", "--hard=pods=0", f"--namespace={SPACE}")
    try:
        system.apply(make_job("denied"))
        wait_for(
            lambda: any("exceeded quota" in event["message"] for event in system.items("events")),
            "an event that says so",
        )
    finally:
        system.plane.kubectl("delete", "quota", "none", f"--namespace={SPACE}")
    wait_for(lambda: running(system, "denied"), "its pods", 60)


def test_a_pod_that_no_node_takes_is_told(system: KubeSystem) -> None:
    system.plane.kubectl("cordon", "fake-0")
    try:
        system.apply(make_job("waits"))
        wait_for(lambda: "nodes are available" in message(system, "waits"), "the cause")
    finally:
        system.plane.kubectl("uncordon", "fake-0")
    wait_for(lambda: running(system, "waits"), "its pods")


def message(system: KubeSystem, name: str) -> str:
    conditions = (system.get("rolloutjobs", name) or {}).get("status", {}).get("conditions", ())
    return next((c.get("message", "") for c in conditions if c["type"] == "StagesReady"), "")


def test_without_its_definitions_the_operator_says_what_to_install() -> None:
    with scratch() as folder, control_plane(folder) as bare:
        done = subprocess.run(
            [BIN / "rollout-operator", "--gateway-url=http://127.0.0.1:9"],
            env={**os.environ, "KUBECONFIG": str(bare.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 1
    assert "install the chart rollout-operator-crds" in done.stderr
