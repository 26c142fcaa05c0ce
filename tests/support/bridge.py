"""Runs the Slurm bridge as a process of its own beside a system, and lets a test kill it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from hack.slurm.cluster import Cluster
from tests.support.system import System


class BridgeProcess:
    """`rollout-slurm` on a system and a Slurm cluster.

    Args:
        system: Whose pods it runs.
        cluster: Where it runs them.
        commands: Directory whose programs stand in front of Slurm's commands.
        rest: Speak to slurmrestd instead of running commands.
    """

    def __init__(
        self,
        system: System,
        cluster: Cluster,
        commands: Path | None = None,
        *,
        rest: bool = False,
    ) -> None:
        self._rest = rest
        self._system = system
        self._cluster = cluster
        self._commands = commands
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        env = {**self._system.env, "SLURM_CONF": self._cluster.env["SLURM_CONF"]}
        if self._commands is not None:
            env["PATH"] = f"{self._commands}:{env['PATH']}"
        with (self._system.state / "logs" / "bridge.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "rollout_slurm", *self._options()],
                env=env,
                stdout=log,
                stderr=log,
            )

    def _options(self) -> list[str]:
        options = ["--scratch", str(self._system.state / "work")]
        if not self._rest:
            return options
        token = self._system.state / "slurm.token"
        token.touch(mode=0o600)
        token.write_text(self._cluster.token())
        return [*options, "--rest-url", self._cluster.rest_url, "--rest-token-file", str(token)]

    def log(self) -> str:
        """What it has said so far."""
        return (self._system.state / "logs" / "bridge.log").read_text()

    def kill(self) -> None:
        """End it without warning."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def has_ended(self) -> bool:
        """Whether it runs no more."""
        assert self._process is not None
        return self._process.poll() is not None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=20)
