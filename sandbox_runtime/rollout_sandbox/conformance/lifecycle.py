"""Beginning and end: what is left, who is to blame."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from ..errors import ImageNotFound, SandboxDied, SandboxUnavailable
from ..manager import SandboxManager
from ..owner import recorded_processes
from ..ports import SandboxSpec
from ..server.processes import kill_all, process_table
from .core import Subject, check, expect, expect_raises

_VICTIM = """
import asyncio, sys
from pathlib import Path
from rollout_sandbox.manager import SandboxManager
from rollout_sandbox.ports import SandboxSpec

async def main(root, backend, image):
    async with SandboxManager(Path(root), owner="victim", backend=backend) as manager:
        async with manager.start(SandboxSpec(image=image)) as sandbox:
            await sandbox.bash("mkdir /workspace/shut; chmod 000 /workspace/shut; sleep 3501 &")
            print("ready", flush=True)
            await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


@check
async def stop_leaves_nothing(subject: Subject) -> None:
    """No process, mount, socket or directory."""
    async with subject.sandbox() as sandbox:
        place = sandbox.directory
        family = recorded_processes(place)
        await sandbox.bash("setsid sleep 3601 & mkdir shut; touch shut/f; chmod 000 shut")
        await _until(lambda: len(_processes_of("sleep 3601")) == 1, "it runs before")
    expect(not place.exists(), "the directory is gone", place)
    expect(_processes_of("sleep 3601") == [], "the processes are gone")
    expect(not _alive(family), "the backend's processes are gone", family)
    mounts = await asyncio.to_thread(Path("/proc/self/mounts").read_text)
    expect(str(place) not in mounts, "no mount is left")


@check
async def a_killed_owner_leaves_nothing(subject: Subject) -> None:
    """Its sandboxes die with it, and the next manager removes their directories."""
    root = subject.manager.root
    arguments = (str(root), subject.manager.backend, subject.image)
    victim = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _VICTIM, *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert victim.stdout is not None  # noqa: S101 - PIPE above
    line = await asyncio.wait_for(victim.stdout.readline(), 60)
    expect(line == b"ready\n", "the victim runs", line)
    await expect_raises(SandboxUnavailable, SandboxManager(root, owner="victim").__aenter__())
    victim.send_signal(signal.SIGKILL)
    await victim.wait()
    await _until(lambda: not _processes_of("sleep 3501"), "the sandbox dies with its owner")
    place = root / "owners" / "victim"
    left = recorded_processes(place / "s0")
    expect(place.exists(), "the directory is left behind")
    async with SandboxManager(root, owner="next", backend=subject.manager.backend):
        expect(not place.exists(), "the next manager removes it")
    await _until(lambda: not _alive(left), "no process of the backend is left")


@check
async def the_end_of_a_sandbox_is_an_infrastructure_error(subject: Subject) -> None:
    """Never an answer to the agent."""
    async with subject.sandbox() as sandbox:
        running = asyncio.create_task(sandbox.bash("sleep 60"))
        await asyncio.sleep(0.3)
        kill_all(recorded_processes(sandbox.directory))
        await expect_raises(SandboxDied, asyncio.wait_for(running, 10))
        await expect_raises(SandboxDied, sandbox.bash("echo"))


@check
async def a_missing_image_is_named(subject: Subject) -> None:
    """And is no sandbox's fault."""
    missing = SandboxSpec(image="/no/such/image.sif")
    await expect_raises(ImageNotFound, subject.manager.open(missing))


@check
async def many_start_at_once(subject: Subject) -> None:
    """Starts queue for the manager's slots and all succeed."""

    async def one(number: int) -> str:
        async with subject.sandbox() as sandbox:
            return (await sandbox.bash(f"echo {number}")).output

    outputs = await asyncio.gather(*(one(number) for number in range(6)))
    expect(outputs == [f"{number}\n" for number in range(6)], "all ran", outputs)


def _alive(pids: list[int]) -> set[int]:
    return {process.pid for process in process_table() if process.state != "Z"} & set(pids)


def _processes_of(text: str) -> list[int]:
    """Return the processes whose command line holds `text`, but not this one and its parents."""
    found: list[int] = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            raw = (directory / "cmdline").read_bytes()
        except OSError:
            continue
        line = raw.replace(b"\0", b" ").decode(errors="replace")
        if text in line and int(directory.name) != os.getpid():
            found.append(int(directory.name))
    return found


async def _until(condition: Callable[[], bool], what: str) -> None:
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0.05)
    expect(condition(), what)
