"""Both ways to Slurm's controller do the same with a real one."""

from __future__ import annotations

import asyncio
import getpass
import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from hack.slurm.cluster import Cluster
from rollout_crds.placement import SlurmPlacement
from rollout_slurm.command_line import CommandLine
from rollout_slurm.errors import SlurmRefused, SlurmUnavailable
from rollout_slurm.job import JobKey, JobSeen, SlurmJob
from rollout_slurm.ports import SlurmControl
from rollout_slurm.rest import Rest

pytestmark = pytest.mark.slurm


@pytest.fixture(params=["command line", "slurmrestd"])
async def control(
    request: pytest.FixtureRequest, slurm: Cluster, tmp_path: Path
) -> AsyncIterator[SlurmControl]:
    if request.param == "command line":
        yield CommandLine({**slurm.env, "SECRET": "x"})
        return
    token = tmp_path / "token"
    token.touch(mode=0o600)
    token.write_text(slurm.token())
    rest = Rest(slurm.rest_url, getpass.getuser(), token, os.environ["PATH"])
    yield rest
    await rest.aclose()


def make_job(folder: Path, command: str, uid: str, **placement: object) -> SlurmJob:
    return SlurmJob(
        name="worker",
        key=JobKey("b", uid),
        script=f"#!/bin/bash\n{command}\n",
        output=str(folder / "out.log"),
        directory=str(folder),
        placement=SlurmPlacement.model_validate({"partition": "main", **placement}),
    )


async def seen(control: SlurmControl, job_id: int, *states: str) -> JobSeen:
    deadline = time.monotonic() + 30
    while True:
        job = next(job for job in await control.jobs() if job.job_id == job_id)
        if job.state in states:
            return job
        assert time.monotonic() < deadline, job
        await asyncio.sleep(0.2)


async def test_a_job_is_found_by_its_key_until_it_has_ended(
    control: SlurmControl, tmp_path: Path
) -> None:
    command = "echo $CUDA_VISIBLE_DEVICES $SLURM_CPUS_ON_NODE; env | grep -c SECRET; exit 3"
    fields = {"gres": "gpu:1", "cpus": 2, "memoryMebibytes": 300, "timeLimitMinutes": 5}
    job_id = await control.submit(make_job(tmp_path, command, "u1", **fields))
    job = await seen(control, job_id, "FAILED")
    assert (job.key, job.reason, job.exit_status) == (JobKey("b", "u1"), "NonZeroExitCode", 768)
    assert job.submitted is not None
    assert abs(job.submitted.timestamp() - time.time()) < 60
    assert (tmp_path / "out.log").read_text().split() == ["0", "2", "0"]


async def test_a_job_is_cancelled_and_unknown_ones_are_no_trouble(
    control: SlurmControl, tmp_path: Path
) -> None:
    job_id = await control.submit(make_job(tmp_path, "exec sleep 99", "u2"))
    await seen(control, job_id, "RUNNING")
    await control.cancel([job_id])
    await seen(control, job_id, "CANCELLED")
    await control.cancel([job_id, 999_999])


async def test_a_wrong_partition_is_refused_in_slurms_words(
    control: SlurmControl, tmp_path: Path
) -> None:
    with pytest.raises(SlurmRefused, match="Invalid partition name"):
        await control.submit(make_job(tmp_path, "true", "u3", partition="nowhere"))
    assert not [job for job in await control.jobs() if job.key.pod_uid == "u3"]


async def test_a_controller_that_is_down_is_not_taken_for_an_empty_one(
    control: SlurmControl, slurm: Cluster, tmp_path: Path
) -> None:
    job = make_job(tmp_path, "true", "u4")
    slurm.kill("slurmctld")
    try:
        with pytest.raises(SlurmUnavailable):
            await control.jobs()
        with pytest.raises(SlurmUnavailable):
            await control.submit(replace(job, key=JobKey("b", "u5")))
    finally:
        slurm.start_controller()
    await asyncio.sleep(0.5)
    assert not [job for job in await control.jobs() if job.key.pod_uid == "u5"]


async def test_a_bad_token_is_named_with_its_file(slurm: Cluster, tmp_path: Path) -> None:
    token = tmp_path / "token"
    rest = Rest(slurm.rest_url, getpass.getuser(), token, "/bin")
    with pytest.raises(SlurmUnavailable, match="cannot read the token"):
        await rest.jobs()
    token.write_text("nonsense")
    with pytest.raises(SlurmUnavailable):
        await rest.jobs()
    token.write_text(slurm.token())
    assert isinstance(await rest.jobs(), tuple)
    await rest.aclose()
