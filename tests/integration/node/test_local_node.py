"""What is left, and what comes back, when the node or its gateway dies or stops."""

import asyncio

import pytest

from tests.integration.node.processes import RunningNode, is_alive, kill, until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]


@pytest.fixture
async def node():
    node = RunningNode("--no-operator")
    try:
        await node.start()
        yield node
    finally:
        await node.close()


async def test_a_killed_gateway_comes_back_with_everything_and_pods_go_on(node):
    await node.run_pod("steady", "echo $$ > $OUT/steady; sleep 600")
    pid = int(await node.written("steady"))
    kill(node.static_pod("gateway").pid)
    await node.run_pod("later", "true", restart_policy="Never")
    await node.pod_when("later", lambda pod: pod.status.phase == "Succeeded", 30)
    assert is_alive(pid)
    assert (await node.pod("steady")).status.restart_count == 0


async def test_killing_the_node_takes_everything_down_and_a_new_one_goes_on(node):
    await node.run_pod("first", "sleep 601 & echo $! > $OUT/child; sleep 600")
    child = int(await node.written("child"))
    processes = [process.pid for process in node.descendants()]
    assert child in processes
    node.kill()
    for pid in processes:
        await until(lambda pid=pid: not is_alive(pid), 10, f"process {pid} outlived the node")
    (node.out / "child").unlink()
    await node.start()
    await node.written("child")
    assert (await node.pod("first")).status.phase == "Running"


async def test_an_orderly_stop_ends_pods_while_the_gateway_still_answers(node):
    script = (
        "trap 'test -S $ROLLOUT_STATE_DIR/run/gateway.sock && echo there > $OUT/last; exit 0' TERM;"
        " echo up > $OUT/up; while :; do sleep 0.1; done"
    )
    await node.run_pod("polite", script)
    await node.written("up")
    taken = await node.terminate()
    assert taken < 15
    assert (node.out / "last").read_text() == "there\n"
    assert not node.ready_file.exists()
    log = (node.state / "logs" / "node.log").read_text()
    assert log.index("polite: stopping") < log.index("gateway: stopping")
    assert node.process.returncode == 0


async def test_a_gateway_that_cannot_start_ends_the_node_with_its_words():
    node = RunningNode("--no-operator")
    try:
        (node.state / "gateway.db").write_bytes(b"this is no database " * 100)
        process = await asyncio.create_subprocess_exec(
            *node.command, stderr=asyncio.subprocess.PIPE
        )
        _, stderr = await asyncio.wait_for(process.communicate(), 60)
        assert process.returncode == 1
        (line,) = stderr.decode().splitlines()
        assert line.startswith("rollout-node: the gateway does not start: exited with code 1: ")
        assert str(node.state / "logs" / "gateway.log") in line
    finally:
        await node.close()
