"""Pods as processes of the local node, declared at its real gateway."""

import asyncio
import subprocess
import sys

import pytest
import pytest_asyncio

from rollout_crds.pod import Pod
from tests.integration.node.processes import RunningNode, is_alive, kill, until

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(180),
    pytest.mark.asyncio(loop_scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node():
    node = RunningNode("--no-operator")
    try:
        await node.start()
        yield node
    finally:
        await node.close()


async def test_a_second_node_on_the_same_state_directory_gives_one_clear_line(node):
    command = [sys.executable, "-m", "rollout_operator.node", "--state-dir", str(node.state)]
    second = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True)
    assert second.returncode == 1
    assert second.stderr.splitlines() == [
        f"rollout-node: a node already runs on {node.state} (process {node.process.pid})"
    ]


async def test_a_pod_s_output_and_end_are_kept(node):
    await node.run_pod("done", "echo hello", restart_policy="Never")
    pod = await node.pod_when("done", lambda pod: pod.status.phase == "Succeeded")
    assert pod.status.reason == "Completed"
    assert (node.state / "logs" / "done.log").read_text() == "hello\n"
    await node.run_pod("fails", "exit 3", restart_policy="Never")
    pod = await node.pod_when("fails", lambda pod: pod.status.phase == "Failed")
    assert "exited with code 3" in pod.status.message


async def test_a_crashing_pod_is_started_again_with_growing_pauses(node):
    await node.run_pod(
        "crash", "echo run >> $OUT/runs; echo no luck >&2; exit 7", restart_policy="OnFailure"
    )
    pod = await node.pod_when("crash", lambda pod: pod.status.restart_count >= 2)
    pod = await node.pod_when("crash", lambda pod: pod.status.reason == "CrashLoopBackOff")
    assert pod.status.message == "exited with code 7: no luck"
    assert len((await node.written("runs")).split()) >= 3


async def test_a_program_that_does_not_exist_is_named_in_the_status(node):
    pod = Pod.model_validate(
        {
            "metadata": {"name": "missing"},
            "spec": {
                "containers": [{"name": "main", "command": ["no-such-program"]}],
                "nodeName": "local",
            },
        }
    )
    await node.client.apply(pod)
    pod = await node.pod_when("missing", lambda pod: pod.status.reason == "CrashLoopBackOff")
    assert "`no-such-program`: not found on PATH" in pod.status.message


async def test_a_pod_of_another_node_is_left_alone(node):
    pod = Pod.model_validate(
        {
            "metadata": {"name": "elsewhere"},
            "spec": {
                "containers": [{"name": "main", "command": ["true"]}],
                "nodeName": "slurm",
                "restartPolicy": "Never",
            },
        }
    )
    await node.client.apply(pod)
    await node.run_pod("here", "true", restart_policy="Never")
    await node.pod_when("here", lambda pod: pod.status.phase == "Succeeded")
    assert (await node.pod("elsewhere")).status.phase == "Pending"


async def test_a_deleted_pod_loses_its_whole_process_group(node):
    script = (
        "trap '' TERM; sleep 600 & echo $! > $OUT/child; echo $$ > $OUT/leader; wait; sleep 600"
    )
    await node.run_pod("group", script, termination_grace_period_seconds=1)
    pids = [int(await node.written("child")), int(await node.written("leader"))]
    await node.client.delete(Pod, "group")
    for pid in pids:
        await until(lambda pid=pid: not is_alive(pid), 10, f"process {pid} is still there")


async def test_a_socket_that_a_killed_pod_leaves_does_not_hinder_the_next_start(node):
    bind = "import os, socket, time; s = socket.socket(socket.AF_UNIX)"
    bind += "; s.bind(os.environ['ROLLOUT_SOCKET']); s.listen(); time.sleep(600)"
    path = node.state / "run" / "server.sock"
    pod = Pod.model_validate(
        {
            "metadata": {"name": "server"},
            "spec": {
                "containers": [
                    {
                        "name": "main",
                        "command": [sys.executable, "-c", bind],
                        "env": [{"name": "ROLLOUT_SOCKET", "value": str(path)}],
                    }
                ],
                "nodeName": "local",
                "terminationGracePeriodSeconds": 1,
            },
        }
    )
    await node.client.apply(pod)
    await until(path.is_socket, 10, "the server does not listen")
    (server,) = [p for p in node.descendants() if bind in p.cmdline()]
    kill(server.pid)
    await node.pod_when("server", lambda pod: pod.status.restart_count == 1)
    await until(path.is_socket, 10, "the server does not listen again")
    assert (await node.pod("server")).status.restart_count == 1
    await node.client.delete(Pod, "server")
    await until(lambda: not path.exists(), 10, "the socket is left over")


async def test_a_recreated_pod_waits_for_the_end_of_the_one_before(node):
    slow = "trap 'sleep 1; echo end >> $OUT/order; exit 0' TERM; echo up > $OUT/up; "
    await node.run_pod("same", f"{slow} while :; do sleep 0.1; done")
    await node.written("up")
    await node.client.delete(Pod, "same")
    await node.run_pod("same", "echo begin >> $OUT/order", restart_policy="Never")
    await node.pod_when("same", lambda pod: pod.status.phase == "Succeeded")
    assert (await node.written("order")).split() == ["end", "begin"]


async def test_a_killed_pod_is_started_again(node):
    await node.run_pod("victim", "echo $$ >> $OUT/pids; sleep 600")
    kill(int(await node.written("pids")))
    pod = await node.pod_when(
        "victim", lambda pod: pod.status.restart_count == 1 and not pod.status.reason
    )
    assert pod.status.phase == "Running"
    assert len((await node.written("pids")).split()) == 2
