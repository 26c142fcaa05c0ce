"""What is submitted for a pod: Slurm's options, and a script that bash can run."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from rollout_crds.placement import SlurmPlacement
from rollout_slurm.builder import Site, job_for_pod
from rollout_slurm.errors import BridgeError, SlurmRefused, SlurmUnavailable, SlurmUncertain
from rollout_slurm.text import failure, submission
from tests.unit.slurm.factories import BRIDGE, make_pod


def site(folder: Path) -> Site:
    environment = {"PATH": f"{folder}:{os.environ['PATH']}", "MARK": "it's"}
    return Site(BRIDGE, environment, folder / "50% logs", scratch=str(folder / "scra tch"))


def test_all_of_a_placement_reaches_sbatch(tmp_path: Path) -> None:
    placement = SlurmPlacement(
        partition="gpu,cpu",
        account="lab",
        qos="high",
        reservation="r1",
        time_limit_minutes=30,
        cpus=4,
        memory_mebibytes=2048,
        gres="gpu:a100:1",
        constraint="a100&ib",
        extra_args=["--exclude=n[1-3]"],
    )
    words = submission(job_for_pod(make_pod("u1", placement=placement), site(tmp_path)))
    assert set(words) >= {
        *("--partition=gpu,cpu", "--account=lab", "--qos=high", "--reservation=r1", "--time=30"),
        *("--cpus-per-task=4", "--mem=2048M", "--gres=gpu:a100:1", "--constraint=a100&ib"),
        *("--exclude=n[1-3]", "--comment=rollout:here:u1", "--no-requeue", "--signal=B:TERM@120"),
        f"--output={tmp_path}/50%% logs/pod-u1.log",
    }


@pytest.mark.parametrize("argument", ["--wrap=id", "--export=ALL", "--output=/x", "-p", "--nice 5"])
def test_arguments_that_could_change_what_is_run_are_refused(argument: str) -> None:
    with pytest.raises(ValidationError, match=r"pattern|must be one of"):
        SlurmPlacement(extra_args=[argument])


def test_the_script_passes_sigterm_on_and_leaves_nothing(tmp_path: Path) -> None:
    worker = tmp_path / "rollout-stage"
    worker.write_text(
        "#!/bin/bash\n"
        f"trap 'echo \"$ROLLOUT_JOB_UID $MARK $1\" >{tmp_path}/said; exit 5' TERM\n"
        'touch "$ROLLOUT_WORK_DIR/busy"\nwhile :; do sleep 0.05; done\n'
    )
    worker.chmod(0o755)
    script = job_for_pod(make_pod("u1"), site(tmp_path)).script
    env = {"SLURM_JOB_ID": "7", "PATH": os.environ["PATH"]}
    with subprocess.Popen(["bash", "-s"], stdin=subprocess.PIPE, env=env, text=True) as process:
        assert process.stdin is not None
        process.stdin.write(script)
        process.stdin.close()
        work = tmp_path / "scra tch" / "rollout-7"
        deadline = time.monotonic() + 20
        while not (work / "busy").exists():
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 5
    assert (tmp_path / "said").read_text() == "it's a `uid` it's run\n"
    assert not work.exists()


@pytest.mark.parametrize(
    ("stderr", "kind"),
    [
        ("sbatch: error: Batch job submission failed: Invalid account", SlurmRefused),
        (
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy "
            "(job submit limit, user's size and/or time limits)",
            SlurmRefused,
        ),
        (
            "slurm_load_jobs error: Unable to contact slurm controller (connect failure)",
            SlurmUnavailable,
        ),
        (
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            SlurmUncertain,
        ),
        (
            "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received",
            SlurmUncertain,
        ),
    ],
)
def test_a_failure_is_told_apart_by_slurms_words(stderr: str, kind: type[BridgeError]) -> None:
    error = failure(stderr)
    assert type(error) is kind
    assert "error: " not in str(error) or "slurm_load" in stderr
