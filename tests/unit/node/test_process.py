"""Child processes: their groups end with them, and with the node however it dies."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import psutil
import pytest

from rollout_operator.node.errors import NodeError, StartError
from rollout_operator.node.paths import NodePaths, locked
from rollout_operator.node.process import ProcessTable, Program
from rollout_operator.node.runner import PodRunner


@pytest.fixture
async def table():
    table = ProcessTable()
    yield table
    table.close()


def program(tmp_path, *argv, death_signal=signal.SIGTERM, **changes):
    return Program(
        argv=argv,
        env={"PATH": os.environ["PATH"], "OUT": str(tmp_path)},
        cwd=tmp_path,
        log=tmp_path / "pod.log",
        death_signal=death_signal,
        **changes,
    )


def shell(tmp_path, script, **changes):
    return program(tmp_path, "sh", "-c", script, **changes)


def text_of(path: Path):
    return path.read_text().strip() if path.exists() else ""


async def read_when_there(path: Path, within=5.0):
    deadline = time.monotonic() + within
    while not (text := text_of(path)):
        assert time.monotonic() < deadline, f"{path} did not appear"
        await asyncio.sleep(0.02)
    return text


def is_alive(pid):
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def until_gone(pid, within=6.0):
    deadline = time.monotonic() + within
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still there"
        await asyncio.sleep(0.02)


async def test_output_and_exit_code_are_kept(table, tmp_path):
    process = table.spawn(shell(tmp_path, "echo out; echo err >&2; exit 3"))
    assert await process.exit_code == 3
    assert sorted((tmp_path / "pod.log").read_text().split()) == ["err", "out"]


async def test_a_killing_signal_is_a_negative_exit_code(table, tmp_path):
    process = table.spawn(shell(tmp_path, "kill -9 $$"))
    assert await process.exit_code == -signal.SIGKILL


async def test_a_program_that_does_not_exist_is_named(table, tmp_path):
    with pytest.raises(StartError, match=r"`no-such-program`: not found on PATH"):
        table.spawn(program(tmp_path, "no-such-program"))


async def test_an_empty_command_is_refused(table, tmp_path):
    with pytest.raises(StartError, match="without a command"):
        table.spawn(program(tmp_path))


async def test_stopping_lets_the_leader_end_in_its_own_way(table, tmp_path):
    script = (
        "trap 'echo bye > $OUT/bye; exit 0' TERM; echo up > $OUT/up; while :; do sleep 0.05; done"
    )
    process = table.spawn(shell(tmp_path, script))
    await read_when_there(tmp_path / "up")
    await process.stop(5)
    assert (tmp_path / "bye").exists()
    assert process.exit_code.result() == 0


async def test_a_leader_that_ignores_the_signal_is_killed_after_the_grace_period(table, tmp_path):
    process = table.spawn(
        shell(tmp_path, "trap '' TERM; echo up > $OUT/up; sleep 60 & wait; sleep 60")
    )
    await read_when_there(tmp_path / "up")
    started = time.monotonic()
    await process.stop(0.3)
    assert 0.25 < time.monotonic() - started < 3
    assert process.exit_code.result() == -signal.SIGKILL


async def test_the_whole_group_ends_with_its_leader(table, tmp_path):
    process = table.spawn(shell(tmp_path, "sleep 60 & echo $! > $OUT/child; exit 1"))
    assert await process.exit_code == 1
    await until_gone(int(await read_when_there(tmp_path / "child")))


async def test_a_left_over_socket_is_removed_before_the_start(table, tmp_path):
    import socket

    path = tmp_path / "engine.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    process = table.spawn(shell(tmp_path, "test ! -e engine.sock", socket=path))
    assert await process.exit_code == 0


PARENT = """
    import asyncio, os, signal, sys
    from pathlib import Path
    from rollout_operator.node.process import ProcessTable, Program

    async def main():
        out = Path(sys.argv[1])
        table = ProcessTable()
        table.spawn(Program(
            argv=("sh", "-c", sys.argv[2]), env={**os.environ, "OUT": str(out)}, cwd=out,
            log=out / "pod.log", death_signal=signal.SIGTERM,
        ))
        await asyncio.sleep(60)

    asyncio.run(main())
"""


def start_parent(tmp_path, script):
    command = [sys.executable, "-c", textwrap.dedent(PARENT), str(tmp_path), script]
    return subprocess.Popen(command)


@pytest.mark.parametrize(
    "script",
    [
        "echo $$ > $OUT/pid; sleep 60",
        "trap '' TERM; echo $$ > $OUT/pid; while :; do sleep 1; done",
        "sleep 60 & echo $! > $OUT/pid; wait",
    ],
    ids=["polite child", "child that ignores signals", "grandchild"],
)
async def test_nothing_outlives_a_killed_node(tmp_path, script):
    parent = start_parent(tmp_path, script)
    pid = int(await read_when_there(tmp_path / "pid"))
    parent.kill()
    parent.wait()
    await until_gone(pid)


async def the_guard():
    for _ in range(100):
        for child in psutil.Process().children():
            if is_alive(child.pid) and "rollout-node-guard" in child.cmdline():
                return child
        await asyncio.sleep(0.02)
    raise AssertionError("there is no guard")


async def test_a_killed_guard_is_replaced(table, tmp_path):
    first = table.spawn(shell(tmp_path, "sleep 60"))
    guard = await the_guard()
    guard.kill()
    await until_gone(guard.pid)
    second = table.spawn(shell(tmp_path, "sleep 60"))
    assert (await the_guard()).pid != guard.pid
    for process in (first, second):
        await process.stop(2)


def test_only_one_node_holds_a_state_directory(tmp_path):
    paths = NodePaths(tmp_path / "s")
    paths.make()
    refusal = pytest.raises(NodeError, match=rf"already runs on .* \(process {os.getpid()}\)")
    with locked(paths), refusal, locked(paths):
        pass
    with locked(paths):
        pass


def test_the_state_directory_is_for_its_owner_alone(tmp_path):
    paths = NodePaths(tmp_path / "deep" / "s")
    paths.make()
    modes = {path.name: path.stat().st_mode & 0o777 for path in (paths.root, paths.run, paths.logs)}
    assert set(modes.values()) == {0o700}


def test_a_state_directory_too_long_for_a_socket_is_refused(tmp_path):
    with pytest.raises(NodeError, match="choose a shorter --state-dir"):
        NodePaths(tmp_path / ("d" * 100)).make()


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(NodeError, match="cannot make the state directory"):
        NodePaths(tmp_path / "file" / "s").make()


async def test_temporary_files_go_with_the_program(table, tmp_path):
    scratch = tmp_path / "tmp" / "pod"
    writer = shell(tmp_path, 'mktemp; echo "$TMPDIR" > "$OUT/dir"; exec sleep 60', scratch=scratch)
    runner = PodRunner("pod", writer, "Always", table)
    runner.start()
    assert await read_when_there(tmp_path / "dir") == str(scratch)
    assert len(list(scratch.iterdir())) == 1
    await runner.stop(1)
    assert not scratch.exists()


def test_temporary_files_are_kept_apart_where_sockets_fit(tmp_path):
    short, long = NodePaths(Path("/s")), NodePaths(Path("/" + "s" * 60))
    assert short.scratch_of("12345678-9abc") == Path("/s/tmp/12345678")
    assert long.scratch_of("12345678-9abc") is None
