"""Hundreds of pods cost the controller about one request each, and none gets two jobs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from hack.slurm.cluster import Cluster
from rollout_crds.meta import ObjectMeta
from rollout_crds.placement import SLURM_ANNOTATION, SLURM_SCHEDULER, SlurmPlacement
from rollout_crds.pod import Container, Pod, PodSpec, PodStatus
from rollout_crds.resources import ChangedObject, Event
from rollout_slurm.bridge import Bridge
from rollout_slurm.builder import Site
from rollout_slurm.command_line import CommandLine
from rollout_slurm.ports import Batch

pytestmark = pytest.mark.slurm
PODS = 300


class Pods:
    """Pods in memory."""

    def __init__(self, pods: list[Pod]) -> None:
        self.pods = {pod.metadata.name: pod for pod in pods}
        self._changed = asyncio.Event()

    async def watch(self) -> AsyncIterator[Batch]:
        while True:
            self._changed.clear()
            yield Batch(
                tuple(
                    ChangedObject(kind="Pod", namespace="default", name=name, object=pod)
                    for name, pod in self.pods.items()
                ),
                complete=True,
            )
            await self._changed.wait()

    def delete_all(self) -> None:
        self.pods.clear()
        self._changed.set()

    async def write_status(self, pod: Pod, status: PodStatus) -> Pod | None:
        if pod.metadata.name not in self.pods:
            return None
        written = pod.model_copy(update={"status": status})
        self.pods[pod.metadata.name] = written
        return written

    async def post_event(self, event: Event) -> None:
        raise AssertionError(event)


def _pod(number: int) -> Pod:
    container = Container(name="stage", command=["sleep", "300"])
    placement = SlurmPlacement(partition="main").model_dump_json(by_alias=True)
    return Pod(
        metadata=ObjectMeta(
            name=f"p{number}", uid=f"uid-{number}", annotations={SLURM_ANNOTATION: placement}
        ),
        spec=PodSpec(containers=[container], scheduler_name=SLURM_SCHEDULER),
    )


async def _until(reached: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.2)


async def test_three_hundred_pods_cost_about_a_request_each(slurm: Cluster, tmp_path: Path) -> None:
    pods = Pods([_pod(number) for number in range(PODS)])
    control = CommandLine(slurm.env)
    site = Site("load", {"PATH": "/usr/bin:/bin"}, tmp_path, scratch=str(tmp_path))
    bridge = asyncio.create_task(Bridge(pods, control, site).run())
    await _until(lambda: all(p.status.start_time for p in pods.pods.values()), 60)
    jobs = await control.jobs()
    assert sorted(job.key.pod_uid for job in jobs) == sorted(f"uid-{n}" for n in range(PODS))
    pods.delete_all()
    await _until(lambda: not slurm.run("squeue", "-h", "-t", "PD,R"), 30)
    bridge.cancel()
    await asyncio.gather(bridge, return_exceptions=True)
    print(f"{control.requests / PODS:.2f} requests a job")
    assert control.requests <= 1.2 * PODS
