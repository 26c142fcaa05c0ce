"""Runs the whole system of one machine as its real processes, and lets a test kill any of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from hack.setup.store import default_root
from rollout_client import RolloutClient
from rollout_crds.resources import Resource
from tests.support.processes import alive, wait_until

BIN = Path(sys.executable).parent
START_SECONDS = 60


class System:
    """A node with its gateway, operator and pods, in a state directory of its own."""

    def __init__(self, state: Path, cache: Path) -> None:
        self.state = state
        self._cache = cache
        self._node: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where the gateway answers."""
        return f"unix://{self.state}/run/gateway.sock"

    @property
    def node_pid(self) -> int:
        """Process id of the node."""
        assert self._node is not None
        return self._node.pid

    @property
    def env(self) -> dict[str, str]:
        """Environment for commands that use this system."""
        return {
            **os.environ,
            "ROLLOUT_STATE_DIR": str(self.state),
            "ROLLOUT_CACHE": str(self._cache),
            "PATH": f"{BIN}:{self._cache / 'bin'}:{os.environ['PATH']}",
        }

    def start(self) -> None:
        """Start the node and wait until it is ready."""
        ready = self.state / "run" / "node.json"
        ready.unlink(missing_ok=True)
        self._node = subprocess.Popen(
            [BIN / "rollout-node", "--state-dir", self.state],
            env=self.env,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        wait_until(lambda: self._ready(ready), f"{ready} by the node", START_SECONDS)

    def _ready(self, ready: Path) -> bool:
        assert self._node is not None
        assert self._node.poll() is None, self.log("node")
        return ready.exists() and json.loads(ready.read_text())["pid"] == self._node.pid

    def stop(self) -> None:
        """Stop everything in order."""
        if self._node is not None:
            self._node.terminate()
            self._node.wait(timeout=30)
            self._node = None

    def kill_node(self) -> None:
        """Kill the node without warning; what it started must go with it."""
        assert self._node is not None
        children = psutil.Process(self._node.pid).children(recursive=True)
        self._node.kill()
        self._node.wait()
        self._node = None
        wait_until(lambda: not alive(children), f"the end of {children}", 15)

    def processes(self) -> dict[str, psutil.Process]:
        """The node's own children by role: `gateway`, `operator`, `init`, `run`, `eval`, ..."""
        assert self._node is not None
        found: dict[str, psutil.Process] = {}
        for process in psutil.Process(self._node.pid).children():
            try:
                role = _role(process.cmdline())
            except psutil.NoSuchProcess:
                continue
            if role is not None:
                found[role] = process
        return found

    def kill(self, role: str) -> int:
        """Kill the process of a role without warning; returns its pid."""
        wait_until(lambda: role in self.processes(), f"a process of role {role}", START_SECONDS)
        process = self.processes()[role]
        process.send_signal(signal.SIGKILL)
        return process.pid

    def client(self) -> RolloutClient:
        """A client of the gateway."""
        return RolloutClient(self.url)

    def apply(self, *resources: Resource) -> None:
        """Create or change objects."""
        with self.client() as client:
            for resource in resources:
                client.apply(resource)

    def log(self, name: str) -> str:
        """End of the log of a pod."""
        path = self.state / "logs" / f"{name}.log"
        return path.read_text()[-4000:] if path.exists() else f"no {path}"


def _role(cmdline: list[str]) -> str | None:
    words = " ".join(cmdline)
    for name in ("gateway", "operator"):
        if f"rollout-{name}" in words:
            return name
    if "rollout-stage" in words:
        return next(stage for stage in ("init", "run", "eval") if stage in cmdline)
    return "engine" if "vllm" in words else None


@contextmanager
def running_system(*, cache: Path | None = None) -> Iterator[System]:
    """Run a system for the body, in a short state directory; nothing of it is left."""
    with TemporaryDirectory(prefix="ro-", dir="/tmp") as folder:
        system = System(Path(folder) / "s", cache or default_root())
        try:
            system.start()
            yield system
        finally:
            system.stop()
