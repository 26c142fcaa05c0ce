"""run: from a manifest to a file of records, through whatever happens meanwhile."""

import json
import os
import re
import signal
import time

import psutil
import pytest

from rollout_client.cli.node import LocalNode
from tests.e2e.cli.conftest import Shell
from tests.support.processes import alive, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.sandbox, pytest.mark.timeout(300)]


def ids(lines: list[str]) -> list[str]:
    return sorted(json.loads(line)["rollout_id"] for line in lines)


def test_a_manifest_becomes_records_and_a_table(shell: Shell, image: str, llm: str) -> None:
    shell.write_job(llm, image=image)
    result = shell.ctl("run", "-f", "job.yaml")
    assert (result.returncode, result.stderr) == (0, "")
    assert "4 of 4 rollouts scored" in result.stdout
    assert "4 records in demo.trajectories.jsonl" in result.stdout
    assert len(set(ids(shell.records))) == len(shell.records) == 4
    assert LocalNode(shell.state).running_pid() is None

    again = shell.ctl("run", "-f", "job.yaml")
    assert again.returncode == 0
    assert "has ended already" in again.stdout
    assert len(shell.records) == 4

    shell.write_job(llm, image=image, samples=3)
    other = shell.ctl("run", "-f", "job.yaml")
    assert other.returncode == 1
    assert "exists with another spec.samplesPerTask; delete it" in other.stderr


def test_a_broken_task_line_fails_the_run_but_not_the_other_tasks(
    shell: Shell, image: str, llm: str
) -> None:
    shell.write_job(llm, image=image, samples=1)
    with (shell.folder / "tasks.jsonl").open("a") as file:
        file.write('{"id": "broken"\n')
    result = shell.ctl("run", "-f", "job.yaml")
    assert result.returncode == 1
    assert result.stderr.startswith("warning: tasks.jsonl:3: not valid JSON")
    assert "2 of 2 rollouts scored" in result.stdout
    assert "refused lines of the task source: 1" in result.stdout


def test_a_killed_node_is_started_again_and_nothing_is_lost_or_doubled(
    shell: Shell, image: str, llm: str
) -> None:
    shell.write_job(llm, image=image, samples=4)
    running = shell.start("run", "-f", "job.yaml")
    node = LocalNode(shell.state)
    wait_until(lambda: "demo" in shell.ctl("get", "rj", "-o", "name").stdout, "the job")
    pid = node.running_pid()
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    out, _ = running.communicate()
    assert running.returncode == 0, out
    assert "the node was killed (SIGKILL); starting it again" in out
    assert len(set(ids(shell.records))) == len(shell.records) == 8


def test_a_killed_run_is_resumed(shell: Shell, image: str, llm: str) -> None:
    shell.write_job(llm, image=image, samples=4)
    running = shell.start("run", "-f", "job.yaml")
    wait_until(lambda: "demo" in shell.ctl("get", "rj", "-o", "name").stdout, "the job")
    running.kill()
    running.communicate()
    result = shell.ctl("run", "-f", "job.yaml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert len(set(ids(shell.records))) == len(shell.records) == 8


def test_an_interrupt_cancels_the_job_and_stops_what_was_started(
    shell: Shell, image: str, llm: str
) -> None:
    shell.write_job(llm, image=image, samples=50)
    running = shell.start("run", "-f", "job.yaml")
    wait_until(lambda: bool(shell.records), "records")
    children = psutil.Process(running.pid).children(recursive=True)
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate()
    assert running.returncode == 130
    kept = len(shell.records)
    assert re.search(rf"cancelled; {kept} records? in demo.trajectories.jsonl", out)
    assert 0 < kept < 100
    assert not alive(children)


def test_a_second_interrupt_leaves_at_once(shell: Shell, image: str, llm: str) -> None:
    shell.write_job(llm, image=image, samples=50)
    running = shell.start("run", "-f", "job.yaml")
    wait_until(lambda: bool(shell.records), "records")
    pid = LocalNode(shell.state).running_pid()
    children = psutil.Process(pid).children(recursive=True)
    gateway = next(child for child in children if "rollout-gateway" in " ".join(child.cmdline()))
    gateway.suspend()  # nothing can be cancelled cleanly now
    running.send_signal(signal.SIGINT)
    time.sleep(0.5)
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=3)
    assert running.returncode == 130
    wait_until(lambda: not alive(children), "the end of what was started")


def test_a_job_whose_llm_pool_is_nowhere_is_refused(shell: Shell, image: str, llm: str) -> None:
    shell.write_job(llm, image=image)
    path = shell.folder / "job.yaml"
    path.write_text(path.read_text().replace("poolRef: {name: stub}", "poolRef: {name: stab}"))
    result = shell.ctl("run", "-f", "job.yaml")
    assert result.returncode == 1
    assert "RolloutJob/demo: spec.llm.poolRef.name: there is no LLMPool 'stab'" in result.stderr
    assert LocalNode(shell.state).running_pid() is None


@pytest.mark.parametrize(
    ("image", "url", "message"),
    [
        (
            "python",
            "http://127.0.0.1:9",
            "LLMPool/stub: spec.endpoints[0].url: no inference server",
        ),
        ("/no/such.sif", "", "RolloutJob/demo: spec.sandbox.image: /no/such.sif does not exist"),
    ],
)
def test_what_is_missing_is_told_before_anything_starts(
    shell: Shell, llm: str, image: str, url: str, message: str
) -> None:
    shell.write_job(url or llm, image=image)
    result = shell.ctl("run", "-f", "job.yaml")
    assert result.returncode == 1
    assert f"error: job.yaml: {message}" in result.stderr
    assert not shell.state.exists()


def test_a_file_that_cannot_be_written_is_told_before_anything_starts(
    shell: Shell, image: str, llm: str
) -> None:
    shell.write_job(llm, image=image)
    result = shell.ctl("run", "-f", "job.yaml", "--output", str(shell.folder))
    assert result.returncode == 1
    assert "cannot be written: Is a directory; name another with --output" in result.stderr
    assert not shell.state.exists()
