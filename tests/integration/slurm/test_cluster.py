"""The private cluster that tests use: real, quick, and gone afterwards."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import psutil
import pytest

from hack.slurm.cluster import Cluster, running_cluster
from tests.support.processes import wait_until

pytestmark = pytest.mark.slurm


def _state(cluster: Cluster, job: str) -> str:
    return cluster.run("squeue", "-h", "-t", "all", "-o", "%T", "-j", job)


def _command_lines() -> list[str]:
    return [" ".join(p.info["cmdline"] or ()) for p in psutil.process_iter(["cmdline"])]


def test_runs_a_job_and_tells_its_exit_code(slurm: Cluster, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sbatch", "--parsable", "--gres=gpu:1"],
        input="#!/bin/sh\nprintenv CUDA_VISIBLE_DEVICES\nexit 3\n",
        env=slurm.env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    job = done.stdout.strip()
    wait_until(lambda: "FAILED" in _state(slurm, job), job, 20)
    assert "ExitCode=3:0" in slurm.run("scontrol", "show", "job", job)
    assert (tmp_path / f"slurm-{job}.out").read_text() == "0\n"


def test_leaves_nothing_though_jobs_run(slurm: Cluster) -> None:
    started = time.monotonic()
    with running_cluster() as other:
        ready = time.monotonic() - started
        subprocess.run(
            ["sbatch"],
            input="#!/bin/sh\nsleep 987\n",
            env=other.env,
            cwd="/tmp",
            text=True,
            check=True,
        )
        wait_until(lambda: "R" in other.run("squeue", "-h", "-o", "%t"), "the job to run", 20)
    assert ready < 5
    assert not other.base.exists()
    left = [words for words in _command_lines() if str(other.base) in words or "sleep 987" in words]
    assert not left
    assert slurm.run("scontrol", "ping"), "the other cluster goes on"
