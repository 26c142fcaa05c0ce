"""A real node in a state directory of its own, for tests of what its processes do."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from rollout_client.client import AsyncRolloutClient
from rollout_crds.meta import ObjectMeta
from rollout_crds.pod import Container, Pod, PodSpec

START_SECONDS = 40


class RunningNode:
    """A `rollout-node` process and a client of its gateway."""

    def __init__(self, *options: str) -> None:
        self.state = Path(tempfile.mkdtemp(prefix="rn-", dir="/tmp"))
        module = [sys.executable, "-m", "rollout_operator.node"]
        self.command = [*module, "--state-dir", str(self.state), *options]
        self.out = self.state / "work"
        self.ready_file = self.state / "run" / "node.json"
        self.client_url = f"unix://{self.state}/run/gateway.sock"
        self.client = AsyncRolloutClient(self.client_url)
        self.process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        """Start the node and wait until it is ready."""
        self.process = _started(self.command)
        await until(self._is_ready, START_SECONDS, "the node is not ready")

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError, ValueError):
            ready = json.loads(self.ready_file.read_text())
            return self.process is not None and ready["pid"] == self.process.pid
        return False

    async def terminate(self) -> float:
        """Stop the node in order and return the seconds that it took."""
        started = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        await until(lambda: self.process.poll() is not None, 30, "the node does not stop")
        return time.monotonic() - started

    def kill(self) -> None:
        """Kill the node itself with SIGKILL."""
        self.process.kill()
        self.process.wait()

    def descendants(self) -> list[psutil.Process]:
        """All processes that the node has started, and theirs."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def static_pod(self, name: str) -> psutil.Process | None:
        """The process of the gateway or the operator."""
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.Error):
                if any(word.endswith(f"rollout-{name}") for word in child.cmdline()):
                    return child
        return None

    async def close(self) -> None:
        """Stop everything and remove the state directory."""
        await self.client.aclose()
        if self.process is not None and self.process.poll() is None:
            await self.terminate()
        shutil.rmtree(self.state)

    async def run_pod(self, name: str, script: str, **spec: object) -> Pod:
        """Declare a pod that runs a shell script; `$OUT` is a directory to write to."""
        container = Container(
            name="main",
            command=["sh", "-c", script.replace("$$", "$$$$")],
            env=[{"name": "OUT", "value": str(self.out)}],
        )
        pod = Pod(
            metadata=ObjectMeta(name=name),
            spec=PodSpec(containers=[container], node_name="local", **spec),
        )
        return await self.client.apply(pod)

    async def pod(self, name: str) -> Pod:
        """A pod as declared and observed."""
        return await self.client.get(Pod, name)

    async def pod_when(self, name: str, wanted, seconds: float = 15) -> Pod:
        """A pod once something holds for it."""
        deadline = time.monotonic() + seconds
        while True:
            pod = await self.pod(name)
            if wanted(pod):
                return pod
            assert time.monotonic() < deadline, f"pod {name} stays {pod.status}"
            await asyncio.sleep(0.05)

    async def written(self, name: str, seconds: float = 15) -> str:
        """What a pod has written to a file under `$OUT`."""
        path = self.out / name
        await until(lambda: path.exists() and path.read_text().strip(), seconds, f"no {path}")
        return path.read_text().strip()


def _started(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command)


async def until(holds, seconds: float, otherwise: str) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, otherwise
        await asyncio.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def kill(pid: int) -> None:
    """Kill one process with SIGKILL."""
    os.kill(pid, signal.SIGKILL)
