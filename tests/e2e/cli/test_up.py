"""up and down: the machine's own cluster, which outlives the commands that use it."""

import signal

import pytest

from rollout_client.cli.node import LocalNode
from tests.e2e.cli.conftest import Shell

pytestmark = [pytest.mark.e2e, pytest.mark.sandbox, pytest.mark.timeout(300)]

IN_POOL = "  poolRef: {name: default}\n"


def test_up_serves_until_it_is_interrupted(shell: Shell) -> None:
    up = shell.start("up")
    assert up.stdout is not None
    lines: list[str] = []
    while not lines or "pool" not in lines[-1]:
        lines.append(up.stdout.readline())
        assert lines[-1], "it ended early: " + "".join(lines)
    assert f"  gateway  unix://{shell.state}/run/gateway.sock\n" in lines
    assert "default: 3 of 3 stage pods run" in lines[-1]
    second = shell.ctl("up")
    assert second.returncode == 1
    assert f"already up on {shell.state}" in second.stderr
    up.send_signal(signal.SIGINT)
    up.communicate()
    assert LocalNode(shell.state).running_pid() is None


def test_a_job_runs_in_the_warm_pool_of_up_and_up_resumes_it_all(
    shell: Shell, image: str, llm: str
) -> None:
    assert shell.ctl("up", "--detach").returncode == 0
    shell.write_job(llm, image=image, more=IN_POOL)
    assert shell.ctl("apply", "-f", "job.yaml").returncode == 0
    waited = shell.ctl("wait", "rj/demo", "--for=condition=Succeeded", "--timeout=2m")
    assert waited.stdout == "RolloutJob/demo condition met\n", waited.stderr
    assert "eval worker" in shell.ctl("logs", "default", "--stage", "eval").stdout
    assert len(shell.ctl("trajectories", "demo").stdout.splitlines()) == 4
    assert shell.ctl("down").stdout.startswith("stopped")
    assert shell.ctl("down").stdout.startswith("nothing runs")
    assert shell.ctl("up", "--detach").returncode == 0
    assert "True" in shell.ctl("get", "rj", "demo").stdout
    assert shell.ctl("run", "-f", "job.yaml").returncode == 0
    assert LocalNode(shell.state).running_pid() is not None
    assert shell.ctl("delete", "rj/demo").stdout == "rolloutjobs/demo deleted\n"


def test_of_two_that_start_at_the_same_time_one_gives_way(shell: Shell) -> None:
    both = [shell.start("up", "--detach", "--no-pool") for _ in range(2)]
    outputs = [process.communicate()[0] for process in both]
    assert sorted(process.returncode for process in both) == [0, 1], outputs
    (refused,) = [text for text in outputs if text.startswith("error: ")]
    assert f"already up on {shell.state} (process " in refused
