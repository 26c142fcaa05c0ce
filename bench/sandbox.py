"""What a sandbox costs, as ratios to the bare thing measured in the same run.

Bash actions against a raw ptyprocess shell on the host and against tmux polled each half second;
IPython cells against a bare kernel; requests by Unix socket against TCP; a fork's first command
against the backend's own program with the same options and no server; and many idle forks.
"""

import asyncio
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import psutil
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager
from ptyprocess import PtyProcess
from rich.console import Console
from rich.table import Table

from bench.processes import pss_mebibytes
from rollout_sandbox.disk import tree_bytes
from rollout_sandbox.eviction import Lease
from rollout_sandbox.manager import SandboxManager
from rollout_sandbox.paths import cache_root
from rollout_sandbox.ports import Entry, Launch, Place, SandboxSpec
from rollout_sandbox.probe import make_backend
from rollout_sandbox.server.http import Connection
from rollout_sandbox.server.refusals import Refusal

ACTIONS, CELLS, STARTS, FORKS = 300, 60, 15, 100
TMUX_POLL_SECONDS = 0.5
IMAGES = {"apptainer": "python.sif", "bubblewrap": "python"}


def run() -> None:
    """Measure and print."""
    table = Table(title=f"Sandboxes on {os.cpu_count()} cores, p50")
    for column in ("what", "ours ms", "bare ms", "ratio"):
        table.add_column(column, justify="left" if column == "what" else "right")
    forks = asyncio.run(_measure(table))
    Console().print(table, *forks, sep="\n")


async def _measure(table: Table) -> list[str]:
    def row(what: str, ours: float, bare: float) -> None:
        table.add_row(what, f"{ours:.2f}", f"{bare:.2f}", f"{ours / bare:.2f}")

    forks: list[str] = []
    with tempfile.TemporaryDirectory() as place:
        for backend, name in IMAGES.items():
            image = str((cache_root() / "images" / name).resolve())
            root = Path(place, backend)
            async with SandboxManager(root, owner="bench", backend=backend) as manager:
                spec = SandboxSpec(image)
                if backend == "bubblewrap":
                    await _tools(manager, spec, row)
                ours, bare = await _starts(manager, spec)
                row(f"{backend}: fork to first command", ours, bare)
                forks.append(await _many(manager, spec))
    row("request by Unix socket, against TCP", _requests(socket.AF_UNIX), _requests(socket.AF_INET))
    return forks


async def _tools(
    manager: SandboxManager, spec: SandboxSpec, row: Callable[[str, float, float], None]
) -> None:
    async with manager.start(spec) as sandbox:
        ours = await _p50(lambda: sandbox.bash("echo hi"), ACTIONS)
        row("bash action, against a raw terminal", ours, _raw_terminal())
        row("tmux polled each half second, against it", _tmux(), ours)
        ours = await _p50(lambda: sandbox.ipython("print('hi')"), CELLS)
        row("IPython cell, against a bare kernel", ours, _bare_kernel())


async def _p50(action: Callable[[], Awaitable[object]], count: int) -> float:
    await action()
    samples: list[float] = []
    for _ in range(count):
        begun = time.perf_counter()
        await action()
        samples.append(time.perf_counter() - begun)
    return 1000 * statistics.median(samples)


def _timed(action: Callable[[], object], count: int) -> float:
    action()
    samples: list[float] = []
    for _ in range(count):
        begun = time.perf_counter()
        action()
        samples.append(time.perf_counter() - begun)
    return 1000 * statistics.median(samples)


def _raw_terminal() -> float:
    shell = PtyProcess.spawn(["bash", "--noprofile", "--norc", "--noediting"], echo=False)
    shell.write(b"PS1=\n")
    numbers = iter(range(10_000))

    def action() -> None:
        number = next(numbers)
        shell.write(b"echo hi; echo end'-'%d.\n" % number)
        seen = b""
        while b"end-%d." % number not in seen:
            seen += shell.read(4096)

    try:
        return _timed(action, ACTIONS)
    finally:
        shell.close(force=True)


def _tmux() -> float:
    """Type, then look at the pane twice a second until the prompt is back."""
    tmux = ["tmux", "-L", f"bench-{os.getpid()}"]
    subprocess.run([*tmux, "new-session", "-d", "-s", "x", "bash --norc"], check=True)
    numbers = iter(range(10_000))

    def action() -> None:
        end = f"end{next(numbers)}e"
        subprocess.run([*tmux, "send-keys", "-t", "x", f"echo hi; echo {end}", "Enter"], check=True)
        while True:
            time.sleep(TMUX_POLL_SECONDS)
            shown = subprocess.run(
                [*tmux, "capture-pane", "-pt", "x"], capture_output=True, text=True
            )
            if f"\n{end}\n" in shown.stdout:
                return

    try:
        return _timed(action, 4)
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def _bare_kernel() -> float:
    manager = KernelManager()
    manager.kernel_cmd = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    manager.transport = "ipc"
    manager.start_kernel()
    client: BlockingKernelClient = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=60)
        return _timed(lambda: client.execute_interactive("print('hi')", output_hook=len), CELLS)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


async def _starts(manager: SandboxManager, spec: SandboxSpec) -> tuple[float, float]:
    """Start ours and the bare one in turn, so that other load meets both."""
    ours, bare = list[float](), list[float]()
    for number in range(STARTS + 1):
        begun = time.perf_counter()
        async with manager.start(spec) as sandbox:
            await sandbox.bash("echo hi")
            ours.append(time.perf_counter() - begun)
        launch = _bare(manager, spec, number)
        begun = time.perf_counter()
        subprocess.run(  # noqa: ASYNC221 - nothing else runs meanwhile
            launch.argv, env=launch.env, check=True, capture_output=True
        )
        bare.append(time.perf_counter() - begun)
    return 1000 * statistics.median(ours[1:]), 1000 * statistics.median(bare[1:])


def _bare(manager: SandboxManager, spec: SandboxSpec, number: int) -> Launch:
    """Describe the backend's program with the options we give it, and `bash` for the server."""
    backend = make_backend(manager.backend, manager.root)
    reference = manager._images.resolve(spec.image, backend, Lease())
    runtime = next(path for path in (cache_root() / "runtime").iterdir() if path.is_dir())
    place = Place(manager.root / f"bare-{number}")
    place.create()
    entry = Entry(reference, (), place, runtime, dict(os.environ))
    return backend.launch(entry, ["/bin/bash", "-c", "echo hi"])


async def _many(manager: SandboxManager, spec: SandboxSpec) -> str:
    before = {process.pid for process in psutil.process_iter()}
    begun = time.perf_counter()
    async with AsyncExitStack() as stack:
        starting = [stack.enter_async_context(manager.start(spec)) for _ in range(FORKS)]
        sandboxes = await asyncio.gather(*starting)
        wall = time.perf_counter() - begun
        await asyncio.sleep(1)
        new = [p.pid for p in psutil.process_iter() if p.pid not in before]
        memory = sum(_pss(pid) for pid in new)
        rss = statistics.median([(await s.health()).rss_bytes for s in sandboxes]) / 2**20
        disk = sum(tree_bytes(s.directory) for s in sandboxes) / 1024
    return (
        f"{manager.backend}: {FORKS} forks in {wall:.1f} s ({1000 * wall / FORKS:.0f} ms each); "
        f"each idle {memory / FORKS:.1f} MiB PSS of all its processes, server {rss:.0f} MiB "
        f"peak RSS, {disk / FORKS:.0f} KiB of disk"
    )


def _pss(pid: int) -> float:
    try:
        return pss_mebibytes(pid)
    except OSError:
        return 0.0


def _requests(family: socket.AddressFamily) -> float:
    """Time a request of 1 KiB that the server's HTTP answers with as much."""
    with _echo(family) as peer:
        request = b"POST /v1/x HTTP/1.1\r\ncontent-length: 1024\r\n\r\n" + b"x" * 1024

        def once() -> None:
            peer.sendall(request)
            seen = 0
            while seen < 1024:
                seen += len(peer.recv(65536))

        return _timed(once, 2000)


@contextmanager
def _echo(family: socket.AddressFamily) -> Iterator[socket.socket]:
    directory = tempfile.mkdtemp()
    with socket.socket(family) as listener, socket.socket(family) as peer:
        listener.bind(("127.0.0.1", 0) if family == socket.AF_INET else f"{directory}/s")
        listener.listen(1)
        peer.connect(listener.getsockname())
        if family == socket.AF_INET:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=_serve, args=(listener.accept()[0],), daemon=True).start()
        yield peer
    shutil.rmtree(directory)


def _serve(peer: socket.socket) -> None:
    connection = Connection(peer, 1 << 20)
    while True:
        try:
            connection.answer(connection.receive().message)
        except (EOFError, OSError, Refusal):
            return
