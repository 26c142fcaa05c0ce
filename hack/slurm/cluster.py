"""Starts and stops a private Slurm cluster: munged, slurmctld, slurmd and slurmrestd of one user.

All daemons run in the foreground, listen on loopback and write below one directory, so that any
number of clusters fit on a machine and nothing is left of one that was stopped.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from hack.slurm.config import Layout, Ports, Shape

SEARCH_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
"""Daemons are where a plain user's PATH does not look."""
START_SECONDS = 15.0
_STOP_SECONDS = 10.0
_FIRST_WITH_ONE_OPENAPI = (23, 2)


class ClusterFailed(RuntimeError):
    """A daemon did not start; the message has the end of its log."""


def free_ports() -> Ports:
    """Ports that nothing listens on."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(3)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return Ports(*(each.getsockname()[1] for each in sockets))


def slurm_version() -> tuple[int, int]:
    """Version of the Slurm on this machine."""
    words = _output(["slurmctld", "-V"], {})
    found = re.search(r"(\d+)\.(\d+)", words)
    if found is None:
        message = "no slurmctld here: `python3 -m hack.setup slurm` installs it"
        raise ClusterFailed(message)
    return int(found[1]), int(found[2])


class Cluster:
    """A cluster in a directory; it lives as long as its daemons, not as long as this object.

    Args:
        base: The directory; must be short, for there are sockets in it.
        shape: What a new cluster has.
        dies_with_parent: Whether the daemons end with the process that starts them.
    """

    def __init__(
        self, base: Path, shape: Shape | None = None, *, dies_with_parent: bool = False
    ) -> None:
        self.base = base
        self._shape = shape or Shape()
        self._dies_with_parent = dies_with_parent
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def env(self) -> dict[str, str]:
        """Environment for Slurm's commands."""
        return {**os.environ, "SLURM_CONF": str(self.base / "slurm.conf"), "PATH": SEARCH_PATH}

    @property
    def rest_url(self) -> str:
        """Where slurmrestd answers."""
        return f"http://127.0.0.1:{json.loads((self.base / 'ports.json').read_text())['rest']}"

    @property
    def version(self) -> tuple[int, int]:
        """Version of Slurm."""
        return slurm_version()

    def up(self) -> None:
        """Start the cluster and wait until it takes jobs.

        Raises:
            ClusterFailed: A daemon did not start; all others were stopped.
        """
        version = slurm_version()
        layout = Layout(self.base, free_ports(), self._shape)
        self._write(layout, is_old=version < _FIRST_WITH_ONE_OPENAPI)
        try:
            self._start_all(layout, version)
        except BaseException:
            self.down()
            raise

    def _write(self, layout: Layout, *, is_old: bool) -> None:
        for part in ("", "munge", "state", "spool", "log", "pid"):
            (self.base / part).mkdir(parents=True, exist_ok=True, mode=0o755)
        for name, text in layout.files(is_old=is_old).items():
            (self.base / name).write_text(text)
        (self.base / "ports.json").write_text(json.dumps(vars(layout.ports)))
        for key, size in ((self.base / "munge" / "key", 1024), (layout.jwt_key, 32)):
            if not key.exists():
                key.touch(mode=0o600)
                key.write_bytes(secrets.token_bytes(size))

    def _start_all(self, layout: Layout, version: tuple[int, int]) -> None:
        munge = self.base / "munge"
        self.start(
            "munged",
            *("munged", "--foreground", "--num-threads=2", f"--key-file={munge / 'key'}"),
            *(f"--socket={layout.munge_socket}", f"--pid-file={munge / 'pid'}"),
            *(f"--log-file={munge / 'log'}", f"--seed-file={munge / 'seed'}"),
        )
        self.wait_for("munged", layout.munge_socket.exists)
        self.start_controller()
        self.start_node()
        schema = "openapi/v0.0.38" if version < _FIRST_WITH_ONE_OPENAPI else "openapi/slurmctld"
        rest = f"127.0.0.1:{layout.ports.rest}"
        self.start(
            "slurmrestd",
            *("slurmrestd", "-f", str(layout.conf), "-a", "rest_auth/jwt", "-s", schema, rest),
            SLURM_JWT="daemon",
            SLURMRESTD_SECURITY="disable_user_check",
        )
        self.wait_for("slurmd", self._has_idle_node)
        self.wait_for("slurmrestd", lambda: _listens(layout.ports.rest))

    def start_controller(self) -> None:
        """Start slurmctld on what it has saved."""
        self.start("slurmctld", "slurmctld", "-D", "-f", str(self.base / "slurm.conf"))
        self.wait_for("slurmctld", lambda: "is UP" in self.run("scontrol", "ping"))

    def start_node(self) -> None:
        """Start slurmd."""
        self.start("slurmd", "slurmd", "-D", "-f", str(self.base / "slurm.conf"))

    def start(self, name: str, *words: str, **env: str) -> None:
        """Start a daemon."""
        tie = ("setpriv", "--pdeathsig", "TERM") if self._dies_with_parent else ()
        with (self.base / "log" / f"{name}.log").open("ab") as log:
            self._children[name] = subprocess.Popen(
                [*tie, *words],
                env={**self.env, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        (self.base / "pid" / name).write_text(str(self._children[name].pid))

    def wait_for(self, name: str, reached: Callable[[], bool]) -> None:
        """Wait until a daemon has come up.

        Raises:
            ClusterFailed: It ended, or did not come up in time.
        """
        deadline = time.monotonic() + START_SECONDS
        while not reached():
            ended = name in self._children and self._children[name].poll() is not None
            if ended or time.monotonic() > deadline:
                log = (self.base / "log" / f"{name}.log").read_text(errors="replace")
                message = f"{name} did not start:\n{log[-2000:]}"
                raise ClusterFailed(message)
            time.sleep(0.02)

    def _has_idle_node(self) -> bool:
        return "idle" in self.run("sinfo", "-h", "-o", "%T")

    def run(self, *words: str) -> str:
        """Standard output of a Slurm command, "" when it fails."""
        return _output(list(words), self.env)

    def token(self, lifespan_seconds: int = 3600) -> str:
        """A token for slurmrestd."""
        words = self.run("scontrol", "token", f"lifespan={lifespan_seconds}")
        return words.strip().partition("=")[2]

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """End a daemon, without warning unless told otherwise, and wait until it is gone."""
        path = self.base / "pid" / name
        if not path.exists():
            return
        pid = int(path.read_text())
        path.unlink()
        with suppress(ProcessLookupError):
            os.kill(pid, number)
        self._wait_until_gone(name, pid)

    def _wait_until_gone(self, name: str, pid: int) -> None:
        child = self._children.pop(name, None)
        deadline = time.monotonic() + _STOP_SECONDS
        while child.poll() is None if child else Path(f"/proc/{pid}").exists():
            if time.monotonic() > deadline:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def down(self) -> None:
        """End all jobs, then all daemons, then what jobs a killed controller has forgotten left."""
        if (self.base / "pid" / "slurmctld").exists():
            self._end_jobs()
        for name in ("slurmrestd", "slurmd", "slurmctld", "munged"):
            self.kill(name, signal.SIGTERM)
        for pid in _job_processes(self.base / "slurm.conf"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _end_jobs(self) -> None:
        deadline = time.monotonic() + _STOP_SECONDS
        while (jobs := self.run("squeue", "-h", "-o", "%i").split()) and (
            time.monotonic() < deadline
        ):
            late = time.monotonic() > deadline - _STOP_SECONDS / 2
            self.run("scancel", *(["--signal=KILL", "--full"] if late else []), *jobs)
            time.sleep(0.1)


def _job_processes(conf: Path) -> list[int]:
    """Processes of jobs of the cluster with this configuration, by their environment."""
    return [
        int(path.parent.name)
        for path in Path("/proc").glob("[0-9]*/environ")
        if _is_job_of(conf, path)
    ]


def _is_job_of(conf: Path, environ: Path) -> bool:
    try:
        variables = environ.read_bytes().split(b"\0")
    except OSError:
        return False
    in_job = any(variable.startswith(b"SLURM_JOB_ID=") for variable in variables)
    return in_job and f"SLURM_CONF={conf}".encode() in variables


def _output(words: list[str], env: dict[str, str]) -> str:
    program = shutil.which(words[0], path=SEARCH_PATH)
    if program is None:
        return ""
    done = subprocess.run(
        [program, *words[1:]], env=env or None, capture_output=True, text=True, timeout=30
    )
    return done.stdout if done.returncode == 0 else ""


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running_cluster(shape: Shape | None = None) -> Iterator[Cluster]:
    """Run a cluster for the body; nothing of it is left."""
    with TemporaryDirectory(prefix="slurm-", dir="/tmp") as folder:
        base = Path(folder)
        base.chmod(0o755)
        cluster = Cluster(base, shape, dies_with_parent=True)
        try:
            cluster.up()
            yield cluster
        finally:
            cluster.down()
