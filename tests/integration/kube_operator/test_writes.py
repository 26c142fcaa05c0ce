"""What a job costs the API server does not grow with its rollouts: counted in the audit log."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from hack.kube import ControlPlane
from tests.integration.kube_operator.system import HOME, RELEASE, KubeSystem, make_job, wait_for
from tests.integration.kube_operator.test_jobs import play, running

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]
OPERATOR = f"system:serviceaccount:{HOME}:{RELEASE}-operator"
MOST_WRITES = 12


def writes(plane: ControlPlane, job: str) -> Counter[str]:
    """The operator's writes about a job, but for those of pods, which its replicas decide."""
    return Counter(
        f"{request.verb} {request.resource} {request.code}"
        for request in plane.requests()
        if request.is_write and request.user == OPERATOR and _is_about(request.name, job)
    )


def _is_about(name: str, job: str) -> bool:
    return name == job or name.startswith((f"{job}.", f"{job}-"))


@pytest.mark.parametrize("samples", [1, 200])
async def test_writes_stay_constant(system: KubeSystem, plane: ControlPlane, samples: int) -> None:
    name = f"counted{samples}"
    made = system.apply(make_job(name, samples=samples))
    wait_for(lambda: running(system, name), "its pods to run")
    await play(system, made["metadata"]["uid"], samples)
    wait_for(lambda: system.condition("rolloutjobs", name, "Succeeded")[0] == "True", "its end")
    wait_for(lambda: not system.pods_of(name), "its pods to go", 60)
    await asyncio.sleep(3)
    counted = writes(plane, name)
    print(counted)
    others = {what: count for what, count in counted.items() if " pods " not in what}
    assert sum(others.values()) <= MOST_WRITES
    pods = {what: count for what, count in counted.items() if " pods " in what}
    assert pods == {"create pods 201": 3, "delete pods 200": 3}
