"""Attacks on a sandbox from inside, each a named program that tells when it got through.

An attack runs with the runtime's Python as the sandbox's root. It finds facts of the host in the
dict `host`, may use the helpers below, and calls `escaped(...)` when it reached something. Run as
`python -m tests.integration.sandbox.battery BACKEND IMAGE ROOT`, this prints what each one did.
"""

import asyncio
import base64
import contextlib
import ctypes
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rollout_sandbox.errors import PathNotFound, PathRefused
from rollout_sandbox.eviction import Lease
from rollout_sandbox.manager import SandboxManager
from rollout_sandbox.ports import Limits, SandboxSpec
from rollout_sandbox.sandbox import Sandbox

HELPERS = """
import base64, ctypes, glob, json, os, socket, stat, subprocess, sys
libc = ctypes.CDLL(None, use_errno=True)
RUNTIME = '/.rollout/runtime'
def escaped(*what): print('ESCAPED', *what, flush=True)
def tries(function, *arguments):
    try: return function(*arguments) or True
    except Exception: return False
def call(name, *arguments): return getattr(libc, name)(*arguments) == 0
def syscall(*arguments): return libc.syscall(*arguments) >= 0
def read(path):
    try: return open(path, 'rb').read(1 << 20)
    except OSError: return b''
"""

ATTACKS = {
    "read a file of the host": """
if read(host['secret_file']): escaped(host['secret_file'])
for link in glob.glob('/proc/*/root') + glob.glob('/proc/*/cwd'):
    if read(link + host['secret_file']): escaped(link)
""",
    "read a file of another sandbox": """
for path in (host['neighbour'], '/.rollout/run/../../neighbour'):
    if os.path.exists(path): escaped(path)
""",
    "find the worker's token in an environment": """
for path in ['/proc/self/environ', *glob.glob('/proc/[0-9]*/environ')]:
    if host['token'].encode() in read(path): escaped(path)
for path in glob.glob('/proc/[0-9]*/cmdline'):
    if host['token'].encode() in read(path): escaped(path)
""",
    "see or signal a process of the host": """
if len(glob.glob('/proc/[0-9]*')) > 20: escaped('many processes')
if b'battery' in read('/proc/%d/cmdline' % host['pid']): escaped('its command line')
if tries(os.kill, host['pid'], 0) and host['pid'] > 1000: escaped('signal')
""",
    "reach the host's loopback": """
s = socket.socket(); s.settimeout(2)
if tries(s.connect, ('127.0.0.1', host['port'])): escaped()
""",
    "reach an abstract socket of the host": """
s = socket.socket(socket.AF_UNIX)
if tries(s.connect, chr(0) + host['abstract']): escaped()
""",
    "reach cloud metadata, the network or a name server": """
for address in ('169.254.169.254', '192.0.2.1', '8.8.8.8'):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        s = socket.socket(socket.AF_INET, kind); s.settimeout(1)
        if tries(s.connect, (address, 80)): escaped(address)
""",
    "open a raw or packet socket": """
for family, kind, number in ((17, 3, 768), (2, 3, 1)):
    if tries(socket.socket, family, kind, number): escaped(family)
""",
    "trace the server": """
if libc.ptrace(16, 1, 0, 0) == 0 or libc.ptrace(0x4206, 1, 0, 0) == 0: escaped('ptrace')
for name in ('mem', 'environ', 'maps', 'auxv', 'stack', 'syscall'):
    if read('/proc/1/' + name): escaped(name)
if tries(os.listdir, '/proc/1/fd') and tries(os.readlink, '/proc/1/fd/0'): escaped('fd')
if tries(os.listdir, '/proc/1/root/'): escaped('root')
""",
    "stop the server": """
for number in range(1, 65): tries(os.kill, 1, number)
""",
    "take the server's socket by pidfd": """
pidfd = libc.syscall(434, 1, 0)
for number in range(3, 12):
    if pidfd >= 0 and libc.syscall(438, pidfd, number, 0) >= 0: escaped(number)
""",
    "use a descriptor left open": """
for name in os.listdir('/proc/self/fd'):
    target = tries(os.readlink, '/proc/self/fd/' + name)
    if isinstance(target, str) and not target.startswith(('pipe:', '/dev/null', '/proc/')):
        escaped(name, target)
""",
    "mount something": """
for source, target, kind, flags in (
    (b'none', b'/mnt', b'tmpfs', 0), (b'proc', b'/proc', b'proc', 0),
    (b'none', b'/mnt', b'sysfs', 0),
    (b'/', b'/mnt', None, 4096), (b'none', b'/mnt', b'cgroup2', 0),
    (None, RUNTIME.encode(), None, 4096 | 32),
):
    tries(os.mkdir, '/mnt')
    if call('mount', source, target, kind, flags, None): escaped(kind)
if call('umount2', RUNTIME.encode(), 2) or call('umount2', b'/proc', 2): escaped('umount')
""",
    "uncover a mount in a namespace of its own": """
if os.fork() == 0:
    if syscall(272, 0x10000000 | 0x00020000):
        for flags in (4096 | 32, 32):
            call('mount', None, RUNTIME.encode(), None, flags, None)
            if tries(open, RUNTIME + '/x', 'w'): escaped('remount')
        if call('umount2', RUNTIME.encode(), 2): escaped('umount')
        if call('mount', b'x', b'/mnt', b'sysfs', 0, None): escaped('sysfs')
    os._exit(0)
os.wait()
""",
    "enter another namespace": """
for name in ('mnt', 'user', 'net', 'pid', 'ipc', 'uts'):
    descriptor = tries(os.open, '/proc/1/ns/' + name, os.O_RDONLY)
    if descriptor and libc.setns(descriptor, 0) == 0: escaped(name)
""",
    "leave by chroot": """
held = os.open('/', os.O_RDONLY); tries(os.mkdir, '/jail'); tries(os.chroot, '/jail')
os.fchdir(held)
for _ in range(64): os.chdir('..')
if read('.' + host['secret_file']): escaped()
""",
    "gain rights by a setuid program": """
status = read('/proc/self/status').decode()
if 'NoNewPrivs:\\t1' not in status: escaped('new privileges are allowed')
bounding = int(status.split('CapBnd:')[1].split()[0], 16)
if bounding & ~0x800405db: escaped(hex(bounding))
""",
    "be a foreign user": """
for number in (host['uid'], 1, 1000, 65533):
    if number and tries(os.setuid, number) and host['single_id']: escaped(number)
""",
    "make or open a device": """
for mode, device in ((stat.S_IFCHR, (1, 1)), (stat.S_IFBLK, (8, 0)), (stat.S_IFCHR, (10, 229))):
    path = '/tmp/device-%d-%d' % device
    tries(os.mknod, path, mode | 0o666, os.makedev(*device))
    if tries(open, path, 'rb'): escaped(path)
for path in glob.glob('/dev/*'):
    kind = os.lstat(path).st_mode
    if stat.S_ISBLK(kind) or os.path.basename(path) in ('mem', 'kmsg', 'port', 'fuse', 'kvm'):
        escaped(path)
""",
    "change the kernel": """
for path in ('/proc/sys/kernel/core_pattern', '/proc/sys/kernel/modprobe', '/proc/sysrq-trigger',
             '/proc/sys/vm/drop_caches', '/proc/sys/kernel/hostname_'):
    if tries(lambda: open(path, 'r+b', 0).write(b'')) and os.access(path, os.W_OK):
        if tries(lambda: open(path, 'r+b', 0).write(read(path))): escaped(path)
for path in ('/proc/kcore', '/proc/kmsg', '/dev/kmsg', '/proc/kallsyms_'):
    if read(path): escaped(path)
if syscall(175, 0, 0, b'') or syscall(246, 0, 0, 0, 0): escaped('module or kexec')
if syscall(321, 5, (ctypes.c_char * 128)(), 128): escaped('bpf')
""",
    "change the image, a layer or the runtime": """
for path in ('/bin/sh', '/etc/passwd', '/layered', RUNTIME + '/bin/python3'):
    tries(lambda: open(path, 'ab').write(b'changed'))
    tries(os.chmod, path, 0o777)
tries(os.unlink, '/layered')
if tries(open, RUNTIME + '/x', 'w'): escaped('runtime')
""",
    "open a file by its handle": """
class Handle(ctypes.Structure):
    _fields_ = [('n', ctypes.c_uint), ('t', ctypes.c_int), ('d', ctypes.c_ulong)]
for number in (2, 128, 256):
    h = Handle(8, 1, number)
    for place in ('/', '/tmp', '/.rollout/run'):
        at = os.open(place, os.O_RDONLY)
        if libc.open_by_handle_at(at, ctypes.byref(h), 0) >= 0: escaped(place)
""",
    "read a key of the host": """
if libc.syscall(250, 10, -3, b'user', b'battery', 0) >= 0: escaped('session keyring')
""",
    "exhaust inotify": """
made = []
for child in range(12):
    if os.fork() == 0:
        held = []
        while (one := libc.inotify_init()) >= 0: held.append(one)
        __import__('time').sleep(3); os._exit(0)
__import__('time').sleep(1)
""",
    "squat the places of the server": """
for name in [*os.listdir('/.rollout/run'), *('bash-%d' % n for n in range(40)), 's']:
    path = '/.rollout/run/' + name
    tries(os.unlink, path); tries(os.mkfifo, path)
""",
}


_libc = ctypes.CDLL(None)


@contextmanager
def inotify_of_the_host() -> Iterator[list[str]]:
    """While a battery runs, note whether the host's user can still have an inotify instance."""
    problems: list[str] = []
    yield problems
    if (instance := _libc.inotify_init()) < 0:
        problems.append("the host's user has no inotify instance left")
    else:
        os.close(instance)


def _facts(token: str, secret: str, neighbour: Sandbox, port: int, abstract: str) -> dict[str, Any]:
    return {
        "secret_file": secret,
        "token": token,
        "neighbour": str(neighbour.directory / "overlay" / "upper"),
        "pid": os.getpid(),
        "uid": os.getuid(),
        "port": port,
        "abstract": abstract,
        "single_id": True,
    }


def _digest(place: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in place.rglob("*") if p.is_file() and not p.is_symlink()):
        with contextlib.suppress(PermissionError):
            digest.update(f"{path} {path.stat().st_mode}".encode() + path.read_bytes()[:65536])
    return digest.hexdigest()


async def _attack(sandbox: Sandbox, code: str, facts: dict[str, Any]) -> str:
    program = f"{HELPERS}\nhost = json.loads({json.dumps(facts)!r})\n{code}\nprint('over')"
    coded = base64.b64encode(program.encode()).decode()
    script = f"echo {coded} | base64 -d >/tmp/a.py; /.rollout/runtime/bin/python3 -I /tmp/a.py"
    done = await sandbox.command(script, timeout_seconds=30)
    return done.output if "over\n" in done.output else f"ESCAPED (it broke) {done.output}"


async def _after(sandbox: Sandbox) -> list[str]:
    """Return what no longer works, or works but should not."""
    problems: list[str] = []
    result = await sandbox.bash("echo fine", timeout_seconds=10)
    if result.output != "fine\n":
        problems.append(f"bash: {result}")
    name = "/tmp/\x1b[31mred\x1b]0;title\x07"
    for error, path in ((PathNotFound, name), (PathRefused, "/tmp")):
        try:
            await sandbox.read(path)
            problems.append(f"{path!r} was read")
        except error as refusal:
            if "\x1b" in str(refusal):
                problems.append("an escape sequence came through an error's text")
    return problems


async def _run(backend: str, image: str, root: Path) -> dict[str, str]:
    token = os.environ["ROLLOUT_TOKEN"]
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    abstract = f"battery-{os.getpid()}"
    listener = await asyncio.start_unix_server(lambda _, writer: writer.close(), f"\0{abstract}")
    limits = Limits(processes=128, memory_bytes=1 << 30, disk_bytes=256 << 20)
    results: dict[str, str] = {}
    _libc.syscall(248, b"user", b"battery", b"key", 3, -3)  # add_key to the session keyring
    async with (
        server,
        listener,
        SandboxManager(root, owner=f"battery-{backend}", backend=backend) as manager,
        manager.start(SandboxSpec(image)) as neighbour,
    ):
        async with manager.start(SandboxSpec(image)) as first:
            await first.bash("echo layered >/layered")
            layer = await first.commit()
        lower = [manager.layers.materialise(layer, Lease())]
        lower += [Path(image)] if not image.endswith(".sif") else []
        before = [_digest(place) for place in lower]
        with tempfile.NamedTemporaryFile("w", dir=root) as secret, inotify_of_the_host() as inotify:
            secret.write(token)
            secret.flush()
            port = server.sockets[0].getsockname()[1]
            facts = _facts(token, secret.name, neighbour, port, abstract)
            spec = SandboxSpec(image, layers=(layer,), limits=limits)
            async with manager.start(spec) as sandbox:
                for name, code in ATTACKS.items():
                    if name == "exhaust inotify":
                        running = asyncio.create_task(_attack(sandbox, code, facts))
                        await asyncio.sleep(1.5)
                        with inotify_of_the_host() as now:
                            pass
                        results[name] = await running + "".join(f"ESCAPED {p}" for p in now)
                    else:
                        results[name] = await _attack(sandbox, code, facts)
                    results[name] += "".join(f"ESCAPED {p}" for p in await _after(sandbox))
        if [_digest(place) for place in lower] != before:
            results["change the image, a layer or the runtime"] += "ESCAPED the lower layers differ"
        results["exhaust inotify"] += "".join(inotify)
    return results


if __name__ == "__main__":
    _libc.prctl(47, 4, 0, 0, 0)  # what starts sandboxes has no ambient capability
    print(json.dumps(asyncio.run(_run(sys.argv[1], sys.argv[2], Path(sys.argv[3])))))
