"""Limits of the whole sandbox: going over one is the agent's doing, and no harm to the host."""

import asyncio

from ..errors import LimitExceeded
from ..ports import RUNTIME_MOUNT, Limits
from .core import Subject, check, expect, expect_raises

_MEBIBYTE = 1 << 20


@check
async def a_fork_bomb_is_an_answer(subject: Subject) -> None:
    """All its processes are ended, the agent is told, and the sandbox goes on."""
    async with subject.sandbox(limits=Limits(processes=100)) as sandbox:
        await sandbox.ipython("kept = 1")
        bomb = await sandbox.bash("b() { b | b & }; b; sleep 8", timeout_seconds=20)
        ended = "processes" in bomb.output or "fork" in bomb.output
        expect(ended, "the bomb is refused or ended", bomb)
        left = ""
        for _ in range(20):
            await asyncio.sleep(0.5)
            left = (await sandbox.command("ls -d /proc/[0-9]* | wc -l")).output
            if left.strip().isdigit() and int(left) < 20:
                return
        expect(False, "few processes are left", left)


@check
async def memory_of_all_processes_together_is_limited(subject: Subject) -> None:
    """Also where each process is below the limit, and where files in memory hold it."""
    limits = Limits(memory_bytes=300 * _MEBIBYTE, processes=100)
    python = f"{RUNTIME_MOUNT}/bin/python3 -c"
    hold = f"{python} 'import time; x = b\"1\" * 80_000_000; time.sleep(8)'"
    async with subject.sandbox(limits=limits) as sandbox:
        eaten = await sandbox.bash(f"for i in 1 2 3 4 5; do {hold} & done; wait")
        expect("MiB of memory, over the limit of 300 MiB" in eaten.output, "memory", eaten)
        fill = "for i in 1 2 3 4; do dd if=/dev/zero of=/dev/shm/$i bs=1M count=100; done; sleep 3"
        filled = await sandbox.bash(f"({fill}) 2>/dev/null")
        expect("over the limit of 300 MiB" in filled.output, "files in memory", filled)
        expect((await sandbox.bash("rm -f /dev/shm/*; echo on")).output == "on\n", "it goes on")


@check
async def a_full_disk_is_the_agents_fault(subject: Subject) -> None:
    """One file can't pass the limit; many end the sandbox, also where their directory is closed."""
    limits = Limits(disk_bytes=32 * _MEBIBYTE)
    async with subject.sandbox(limits=limits) as sandbox:
        one = await sandbox.bash("ulimit -f")
        expect(one.output == f"{32 * 1024}\n", "one file", one)
        fill = "for i in 1 2 3; do dd if=/dev/zero of=shut/$i bs=1M count=20; done"
        filling = sandbox.bash(f"mkdir shut; {fill}; chmod 000 shut; sleep 20")
        await expect_raises(LimitExceeded, filling)
        await expect_raises(LimitExceeded, sandbox.bash("echo"))
