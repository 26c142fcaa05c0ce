"""Jobs on a real API server, by an operator with no more rights than the chart gives it."""

from __future__ import annotations

import pytest

from tests.integration.kube_operator.system import FINALIZER, SPACE, KubeSystem, make_job, wait_for
from tests.integration.operator.worker import Worker

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(180)]
PODS = {"eval-0", "init-0", "run-0"}


def names(job: str) -> set[str]:
    return {f"{job}-{pod}" for pod in PODS}


def running(system: KubeSystem, job: str) -> bool:
    pods = system.pods_of(job)
    return set(pods) == names(job) and all(
        pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        for pod in pods.values()
    )


async def play(system: KubeSystem, uid: str, samples: int) -> None:
    async with Worker(system.gateway_url, uid) as worker:
        await worker.prepare()
        done = 0
        while done < samples:
            done += len(await worker.run())
            await worker.evaluate()


async def test_a_job_runs_to_success(system: KubeSystem) -> None:
    made = system.apply(make_job("succeeds", samples=2))
    wait_for(lambda: running(system, "succeeds"), "its pods to run")
    for pod in system.pods_of("succeeds").values():
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
        assert pod["spec"]["nodeName"] == "fake-0"
    wait_for(
        lambda: system.condition("rolloutjobs", "succeeds", "Progressing")[0] == "True", "leases"
    )
    await play(system, made["metadata"]["uid"], 2)
    wait_for(
        lambda: system.condition("rolloutjobs", "succeeds", "Succeeded") == ("True", "Completed"),
        "success",
    )
    wait_for(lambda: not system.pods_of("succeeds"), "its pods to go")
    found = system.get("rolloutjobs", "succeeds")
    assert found is not None
    assert found["status"]["progress"]["outcomes"]["scored"] == 2
    assert found["metadata"]["finalizers"] == [FINALIZER]
    assert not any("kopf" in key for key in found["metadata"].get("annotations", {}))
    described = system.plane.kubectl("describe", "rj", "succeeds", f"--namespace={SPACE}")
    assert "every group" in described or "Completed" in described.split("Events:")[1]


def test_a_pod_deleted_by_hand_comes_back(system: KubeSystem) -> None:
    system.apply(make_job("heals"))
    wait_for(lambda: running(system, "heals"), "its pods to run")
    old = system.pods_of("heals")["heals-run-0"]["metadata"]["uid"]
    system.delete("pods", "heals-run-0")
    wait_for(
        lambda: (
            running(system, "heals")
            and system.pods_of("heals")["heals-run-0"]["metadata"]["uid"] != old
        ),
        "another pod",
    )
