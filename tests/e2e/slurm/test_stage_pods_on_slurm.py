"""A job's stage pods run as jobs of a real Slurm cluster, one each, whatever happens to them."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from hack.slurm.cluster import Cluster
from rollout_crds.pod import Pod
from rollout_crds.result import Outcome
from rollout_crds.rolloutjob import RolloutJob
from tests.support.bridge import BridgeProcess
from tests.support.engine import cached
from tests.support.processes import wait_until
from tests.support.stub_jobs import SCRIPT, arithmetic_job, stub_pool
from tests.support.stub_llm import RunningStub, stub_llm
from tests.support.system import System, running_system

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.sandbox,
    pytest.mark.slurm,
    pytest.mark.timeout(240),
]
PLACEMENT = {"slurm": {"partition": "main", "timeLimitMinutes": 10}}
KILLER = """\
#!/bin/sh
# Submits, then ends the bridge before it learns of it, once.
{sbatch} "$@" >{folder}/answer || exit
if mkdir {folder}/done 2>/dev/null; then kill -9 $PPID; fi
cat {folder}/answer
"""


@pytest.fixture
def stub() -> Iterator[RunningStub]:
    with stub_llm(tokenizer=cached("models", "tiny-qwen3"), script=SCRIPT, latency_ms=50) as stub:
        yield stub


@pytest.fixture
def system() -> Iterator[System]:
    cached("images", "busybox")
    with running_system() as running:
        yield running


def _jobs(cluster: Cluster, states: str = "all") -> list[tuple[str, str, str]]:
    """Id, state and comment of all jobs."""
    table = cluster.run("squeue", "-h", "-t", states, "-o", "%i %T %k")
    rows = [line.split() for line in table.splitlines()]
    return [(job, state, comment) for job, state, comment in rows]


def _assert_all_scored(system: System, name: str, total: int) -> None:
    with system.client() as client:
        client.wait(RolloutJob, name, "Succeeded", timeout_seconds=120)
        records = list(client.trajectories(name))
    assert len({record.rollout_id for record in records}) == len(records) == total
    outcomes = Counter((record.outcome, record.reward) for record in records)
    assert outcomes == {(Outcome.SCORED, 1.0): total}


@pytest.mark.parametrize("rest", [False, True], ids=["command line", "slurmrestd"])
def test_twenty_rollouts_run_in_slurm_jobs_that_are_gone_afterwards(
    system: System, stub: RunningStub, slurm: Cluster, *, rest: bool
) -> None:
    before = len(_jobs(slurm))
    job = arithmetic_job("plain", tasks=10, samples=2, placement=PLACEMENT)
    with BridgeProcess(system, slurm, rest=rest) as bridge:
        system.apply(stub_pool(stub.url, cached("models", "tiny-qwen3")), job)
        _assert_all_scored(system, "plain", 20)
        wait_until(lambda: not _jobs(slurm, "PD,R,CG"), "an empty queue", 30)
    print(bridge.log())
    assert len(_jobs(slurm)) == before + 3, "one job for each of the three stage pods"
    assert not list((system.state / "work").glob("rollout-[0-9]*")), "working directories are left"


def test_a_bridge_killed_before_it_learns_of_its_submission_adopts_the_job(
    system: System, stub: RunningStub, slurm: Cluster, tmp_path: Path
) -> None:
    before = {job for job, _, _ in _jobs(slurm)}
    real = slurm.run("sh", "-c", "command -v sbatch").strip()
    killer = tmp_path / "sbatch"
    killer.write_text(KILLER.format(sbatch=real, folder=tmp_path))
    killer.chmod(0o755)
    job = arithmetic_job("adopted", tasks=2, samples=2, placement=PLACEMENT)
    with BridgeProcess(system, slurm, commands=tmp_path) as bridge:
        system.apply(stub_pool(stub.url, cached("models", "tiny-qwen3")), job)
        wait_until(bridge.has_ended, "the bridge to be killed", 30)
        bridge.start()
        _assert_all_scored(system, "adopted", 4)
        wait_until(lambda: not _jobs(slurm, "PD,R,CG"), "an empty queue", 30)
    new = [comment for job, _, comment in _jobs(slurm) if job not in before]
    assert len(new) == len(set(new)) == 3


def test_a_job_cancelled_by_an_admin_is_told_in_the_pod_and_replaced(
    system: System, stub: RunningStub, slurm: Cluster
) -> None:
    job = arithmetic_job(
        "cancelled", tasks=1, samples=1, placement=PLACEMENT, stages={"run": {"replicas": 0}}
    )
    with BridgeProcess(system, slurm), system.client() as client:
        system.apply(stub_pool(stub.url, cached("models", "tiny-qwen3")), job)
        wait_until(lambda: len(_jobs(slurm, "R")) == 2, "two running jobs", 30)
        victim = min(job for job, _, _ in _jobs(slurm, "R"))
        slurm.run("scancel", victim)

        def failed() -> bool:
            pods = [pod for pod in client.list(Pod) if pod.status.phase == "Failed"]
            return any(
                (pod.status.reason, f"job {victim} was cancelled" in pod.status.message)
                == ("Cancelled", True)
                for pod in pods
            )

        wait_until(failed, "a failed pod in Slurm's words", 30)
        wait_until(lambda: len(_jobs(slurm, "R")) == 2, "the pod's replacement", 40)
        client.delete(RolloutJob, "cancelled")
        wait_until(lambda: not _jobs(slurm, "PD,R,CG"), "jobs without pods to be cancelled", 30)


def test_a_refused_submission_shows_slurms_words_and_what_is_mended_runs(
    system: System, stub: RunningStub, slurm: Cluster
) -> None:
    wrong = {"slurm": {"partition": "nowhere"}}
    job = arithmetic_job("refused", tasks=1, samples=1, placement=wrong)
    with BridgeProcess(system, slurm), system.client() as client:
        system.apply(stub_pool(stub.url, cached("models", "tiny-qwen3")), job)

        def told() -> bool:
            messages = [pod.status.message for pod in client.list(Pod)]
            return any("nvalid partition" in message for message in messages)

        wait_until(told, "Slurm's words in a pod", 30)
        system.apply(job.model_copy(update={"spec": _placed(job)}))
        _assert_all_scored(system, "refused", 1)
        wait_until(lambda: not _jobs(slurm, "PD,R,CG"), "an empty queue", 30)


def _placed(job: RolloutJob) -> object:
    fields = job.spec.model_dump(by_alias=True, mode="json", exclude_none=True)
    return type(job.spec).model_validate({**fields, "placement": PLACEMENT})


def test_jobs_outlive_a_restart_of_the_controller(
    system: System, stub: RunningStub, slurm: Cluster
) -> None:
    before = len(_jobs(slurm))
    job = arithmetic_job("restart", tasks=10, samples=2, placement=PLACEMENT)
    with BridgeProcess(system, slurm):
        system.apply(stub_pool(stub.url, cached("models", "tiny-qwen3")), job)
        wait_until(lambda: len(_jobs(slurm, "R")) == 3, "three running jobs", 30)
        slurm.kill("slurmctld")
        subprocess.run(["sleep", "2"], check=True)
        slurm.start_controller()
        _assert_all_scored(system, "restart", 20)
        wait_until(lambda: not _jobs(slurm, "PD,R,CG"), "an empty queue", 30)
    assert len(_jobs(slurm)) == before + 3


def test_preemption_loses_no_rollout(
    system: System, stub: RunningStub, slurm: Cluster, tmp_path: Path
) -> None:
    before = {job for job, _, _ in _jobs(slurm)}
    scavenge = {"slurm": {"partition": "scavenge", "timeLimitMinutes": 10}}
    slow = {"run": {"concurrency": 1}}
    job = arithmetic_job("preempted", tasks=40, samples=2, placement=scavenge, stages=slow)
    with BridgeProcess(system, slurm), system.client() as client:
        system.apply(stub_pool(stub.url, cached("models", "tiny-qwen3")), job)
        wait_until(lambda: client.progress("preempted").finished > 2, "first results", 40)
        subprocess.run(
            ["sbatch", "--partition=main", "--cpus-per-task=16", f"--output={tmp_path / 'out'}"],
            input="#!/bin/sh\nsleep 2\n",
            env=slurm.env,
            text=True,
            check=True,
        )
        _assert_all_scored(system, "preempted", 80)
        wait_until(lambda: not _jobs(slurm, "PD,R,CG"), "an empty queue", 30)
    states = Counter(state for job, state, _ in _jobs(slurm) if job not in before)
    assert states["PREEMPTED"] == 3, states
