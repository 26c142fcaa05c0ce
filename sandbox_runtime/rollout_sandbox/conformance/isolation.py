"""What a sandbox can't see, reach or change."""

import asyncio
import json
import secrets
import tempfile

from ..ports import RUNTIME_MOUNT, Limits
from .core import Subject, check, expect


@check
async def there_is_no_network(subject: Subject) -> None:
    """The host's loopback, its abstract sockets and the world are out of reach."""
    name = f"rollout-{secrets.token_hex(4)}"
    tcp = await asyncio.start_server(_close, "127.0.0.1", 0)
    abstract = await asyncio.start_unix_server(_close, f"\0{name}")
    port = tcp.sockets[0].getsockname()[1]
    targets = f"[(2, ('127.0.0.1', {port})), (2, ('192.0.2.1', 80)), (1, chr(0) + {name!r})]"
    async with tcp, abstract, subject.sandbox() as sandbox:
        result = await sandbox.ipython(
            "import json, os, socket\nreached = []\n"
            f"for family, address in {targets}:\n"
            "    s = socket.socket(family); s.settimeout(2)\n"
            "    try: s.connect(address); reached.append(str(address))\n"
            "    except OSError: pass\n"
            "print(json.dumps([reached, sorted(os.listdir('/proc/self/net/dev_snmp6'))]))"
        )
        reached, devices = json.loads(result.output)
        expect(reached == [], "nothing can be reached", reached)
        expect(devices == ["lo"], "only its own loopback", devices)


async def _close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


@check
async def host_files_are_out_of_reach(subject: Subject) -> None:
    """No file of the host can be seen, and only the sandbox's own places can be written."""
    with tempfile.NamedTemporaryFile() as secret:
        async with subject.sandbox() as sandbox:
            seen = await sandbox.bash(f"ls {secret.name}")
            expect(seen.exit_code != 0, "a file of the host is not there", seen)
            mounts = (await sandbox.read("/proc/self/mounts")).decode()
            disks = [line.split()[1:4] for line in mounts.splitlines() if line.startswith("/dev/")]
            writable = {where for where, _, options in disks if "rw" in options.split(",")}
            own = {"/.rollout/run", "/tmp", "/var/tmp"}  # noqa: S108 - inside the sandbox
            expect(writable <= own, "only its own places are writable", writable)


@check
async def the_runtime_is_read_only(subject: Subject) -> None:
    """Neither a write nor a remount changes what all sandboxes share."""
    async with subject.sandbox() as sandbox:
        for attempt in (
            f"touch {RUNTIME_MOUNT}/x",
            f"mount -o remount,rw,bind {RUNTIME_MOUNT} && touch {RUNTIME_MOUNT}/x",
            f"umount {RUNTIME_MOUNT}",
            f"rm -rf {RUNTIME_MOUNT}/bin",
        ):
            result = await sandbox.bash(attempt)
            expect(result.exit_code != 0, attempt, result)
        expect((await sandbox.ipython("1+1")).output == "2\n", "the runtime still works")


@check
async def the_server_can_not_be_touched(subject: Subject) -> None:
    """No signal ends it, and its descriptors, memory and control socket are out of reach."""
    async with subject.sandbox() as sandbox:
        await sandbox.bash("for s in KILL TERM INT HUP STOP SEGV USR1; do kill -$s 1; done")
        expect((await sandbox.health()).python != "", "it answers")
        for attempt in ("readlink /proc/1/fd/0", "head -c1 /proc/1/mem", "cat /proc/1/environ"):
            result = await sandbox.bash(attempt)
            expect(result.exit_code != 0, attempt, result)


@check
async def images_are_never_changed(subject: Subject) -> None:
    """A directory of the image can be removed whole; the next sandbox has it again."""
    async with subject.sandbox() as sandbox:
        gone = await sandbox.bash("rm -rf /usr/share /bin/false /usr/bin/false && ls /usr/share")
        expect(gone.exit_code != 0 and "rm:" not in gone.output, "rm -rf works", gone)
        again = await sandbox.bash("mkdir /usr/share && touch /usr/share/mine && ls /usr/share")
        expect(again.output == "mine\n", "and making it anew hides the old", again)
    async with subject.sandbox() as other:
        kept = await other.bash("ls /usr/share; ls /bin/false")
        expect("mine" not in kept.output and kept.exit_code == 0, "the image is whole", kept)


@check
async def tmp_is_on_disk(subject: Subject) -> None:
    """It takes more than a container's usual 64 MB."""
    async with subject.sandbox() as sandbox:
        for place in ("/tmp", "/var/tmp", "/workspace"):  # noqa: S108 - inside the sandbox
            fill = f"dd if=/dev/zero of={place}/big bs=1M count=100 && rm {place}/big"
            filled = await sandbox.bash(fill)
            expect(filled.exit_code == 0, f"100 MB fit into {place}", filled)


@check
async def limits_bind_every_tool(subject: Subject) -> None:
    """The rlimits hold in the shell, in commands and in Python."""
    limits = Limits(memory_bytes=4 << 30, open_files=200, action_seconds=30)
    async with subject.sandbox(limits=limits) as sandbox:
        for result in (await sandbox.bash("ulimit -v -n"), await sandbox.command("ulimit -v -n")):
            expect(str(4 << 20) in result.output and "200" in result.output, "ulimit", result)
        python = await sandbox.ipython(
            "import resource; resource.getrlimit(resource.RLIMIT_NOFILE)"
        )
        expect(python.output == "(200, 200)\n", "the kernel", python)
        large = await sandbox.ipython("bytearray(6 << 30)")
        expect(large.error_name == "MemoryError", "memory is refused", large)


@check
async def limits_end_an_action(subject: Subject) -> None:
    """A request can't ask for more time than the sandbox's limit."""
    async with subject.sandbox(limits=Limits(action_seconds=0.5)) as sandbox:
        late = await sandbox.bash("sleep 60", timeout_seconds=60)
        expect(late.timed_out, "the limit binds", late)
