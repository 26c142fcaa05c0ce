"""What the commands show of a job that has run."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from rollout_client import RolloutClient
from rollout_crds.rolloutjob import RolloutJob
from tests.integration.cli.conftest import Command
from tests.integration.client.gateway_process import GatewayProcess, PlayedWorker, job

UNKNOWN = {"type": "Succeeded", "status": "Unknown", "reason": "RolloutsRunning"}
DONE = {"type": "Succeeded", "status": "True", "reason": "Completed"}
REFUSED = {
    "type": "Accepted",
    "status": "False",
    "reason": "TaskSourceUnreadable",
    "message": "no such file",
}


@pytest.fixture
def demo(gateway: GatewayProcess) -> RolloutJob:
    """A job whose task t0 was scored and whose task t1 failed."""
    with RolloutClient(gateway.url) as client:
        applied = client.apply(job())
    gateway.submit(applied)
    asyncio.run(_finish(gateway.url, applied.metadata.uid))
    return applied


async def _finish(url: str, uid: str) -> None:
    worker = PlayedWorker(url, uid, failing="t1")
    await worker.finish(100)
    await worker.aclose()


@pytest.mark.usefixtures("demo")
def test_get_shows_resources_in_every_form(ctl: Command, gateway: GatewayProcess) -> None:
    gateway.set_conditions("rolloutjobs", "demo", DONE)
    header, row = ctl("get", "rj").out.splitlines()
    assert header.split() == ["NAME", "SUCCEEDED", "REASON", "FINISHED", "SCORED", "AGE"]
    assert row.split()[:3] == ["demo", "True", "Completed"]
    assert "HANDLER" in ctl("get", "rolloutjobs", "-o", "wide").out
    assert ctl("get", "rj", "-o", "name").out == "rolloutjobs/demo\n"
    assert json.loads(ctl("get", "rj/demo", "-o", "json").out)["metadata"]["name"] == "demo"
    assert "handler: math" in ctl("get", "rj", "demo", "-o", "yaml").out
    missing = ctl("get", "rj", "none")
    assert (missing.code, missing.err.startswith("error: ")) == (1, True)


@pytest.mark.usefixtures("demo")
def test_describe_shows_failures_by_reason(ctl: Command) -> None:
    out = ctl("describe", "rj", "demo").out
    assert "finished 4 of 4 rollouts in 2 groups: 2 scored, 2 infra_error" in out
    assert "2 x ModelUnavailable in run: " in out


@pytest.mark.usefixtures("demo")
def test_rollouts_are_listed_with_rewards_and_failures(ctl: Command) -> None:
    rows = [line.split() for line in ctl("rollouts", "demo").out.splitlines()[1:]]
    assert [(row[0], row[2], row[3]) for row in rows] == [
        *[("t0", "scored", "1")] * 2,
        *[("t1", "infra_error", "-")] * 2,
    ]


def test_trajectories_come_as_records_segments_and_table(
    ctl: Command, demo: RolloutJob, tmp_path: Path
) -> None:
    records = [json.loads(line) for line in ctl("trajectories", "demo").out.splitlines()]
    assert len(records) == 4
    assert {record["job_uid"] for record in records} == {demo.metadata.uid}
    out = tmp_path / "out.jsonl"
    ctl("trajectories", "demo", "--follow", "--output", str(out))
    assert len(out.read_text().splitlines()) == 4
    segments = [
        json.loads(line) for line in ctl("trajectories", "demo", "-o", "segments").out.splitlines()
    ]
    assert [s["token_ids"] for s in segments] == [[1, 2, 3, 4, 5, 6]] * 2
    assert [s["loss_mask"] for s in segments] == [[0, 0, 1, 0, 1, 1]] * 2
    assert "infra_error" in ctl("trajectories", "demo", "-o", "table").out


@pytest.mark.usefixtures("demo")
def test_wait_ends_with_the_condition_or_says_why_not(
    ctl: Command, gateway: GatewayProcess
) -> None:
    gateway.set_conditions("rolloutjobs", "demo", UNKNOWN)
    late = ctl("wait", "rj/demo", "--for=condition=Succeeded", "--timeout=0.2s")
    assert (late.code, "timed out; RolloutJob/demo: Succeeded is Unknown" in late.err) == (1, True)
    gateway.set_conditions("rolloutjobs", "demo", DONE)
    assert ctl("wait", "rj", "demo").out == "RolloutJob/demo condition met\n"
    gateway.set_conditions("rolloutjobs", "demo", UNKNOWN, REFUSED)
    refused = ctl("wait", "rj/demo")
    assert refused.code == 1
    assert "Accepted is False: TaskSourceUnreadable: no such file" in refused.err


@pytest.mark.usefixtures("demo")
def test_wait_for_deletion(ctl: Command) -> None:
    assert ctl("delete", "rj/demo").out == "rolloutjobs/demo deleted\n"
    assert ctl("wait", "rj/demo", "--for=delete").code == 0
    assert ctl("get", "rj").out == "no rolloutjobs\n"


@pytest.mark.usefixtures("demo")
def test_a_job_is_suspended_and_resumed(ctl: Command) -> None:
    for command, expected in (("suspend", True), ("resume", False)):
        assert ctl(command, "demo").code == 0
        shown = json.loads(ctl("get", "rj/demo", "-o", "json").out)
        assert shown["spec"]["suspended"] is expected


@pytest.mark.usefixtures("demo")
def test_watch_prints_each_change(gateway: GatewayProcess) -> None:
    words = ["get", "rj", "-w", "--state-dir", str(gateway.state)]
    script = "import sys; from rollout_client.cli import main; main(sys.argv[1:])"
    with subprocess.Popen(
        [sys.executable, "-c", script, *words], stdout=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        first = [watching.stdout.readline() for _ in range(2)]
        gateway.set_conditions("rolloutjobs", "demo", DONE)
        second = [watching.stdout.readline() for _ in range(2)]
        watching.terminate()
    assert "Unknown" in first[1]
    assert "Completed" in second[1]


def test_logs_name_those_there_are(ctl: Command, gateway: GatewayProcess) -> None:
    logs = gateway.state / "logs"
    logs.mkdir()
    (logs / "demo-run-0.log").write_text("hello\n")
    assert ctl("logs", "demo").out == "hello\n"
    missing = ctl("logs", "other")
    assert (missing.code, "there are: demo-run-0" in missing.err) == (1, True)
