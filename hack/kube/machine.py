"""A machine inside this one for a node: processes, network and mounts of its own, made as root.

All of it hangs on one process, which dies with its starter. With it the kernel ends everything that
runs inside and takes network, mounts and routes back; only empty cgroups and files are left.
"""

import os
import shlex
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from hack.kube.errors import KubeError, wait_until
from hack.kube.folder import cgroup_name, cgroup_roots, claimed, remove_cgroups
from hack.kube.process import Process, program
from hack.kube.programs import SERVICES
from hack.setup.store import default_root

_READY_S = 20.0
_HIDDEN = ("/run", "/var/lib", "/var/log")
"""Folders that programs of a node write to whatever they are told; inside they start empty."""
_NETWORKS = 200
# kubelet sets these, which are the whole machine's: it gets copies of its own.
_SYSCTLS = {
    "vm/overcommit_memory": "1",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


@dataclass(frozen=True)
class Machine:
    """The machine, and how the two ends of its only cable are called."""

    folder: Path
    number: int
    """Which of the networks it has; unique on this machine."""
    init: Process
    pid: int
    """Its first process."""

    @property
    def gateway(self) -> str:
        """Address of the outer end, where an API server for its node listens."""
        return f"10.250.{self.number}.1"

    @property
    def address(self) -> str:
        """Address of the inner end."""
        return f"10.250.{self.number}.2"

    @property
    def pods(self) -> str:
        """Network of its pods, which the outside can reach."""
        return f"10.244.{self.number}.0/24"

    @property
    def cgroup(self) -> str:
        """Name of the cgroup for its pods, below the root of each hierarchy."""
        return cgroup_name(self.folder)

    def inside(self, *argv: str) -> list[str]:
        """Return a command that runs inside."""
        return ["nsenter", f"--target={self.pid}", "--mount", "--net", "--pid", *argv]

    def run(self, *argv: str, timeout_s: float = 120) -> str:
        """Run a command inside and return what it prints.

        Raises:
            KubeError: It failed.
        """
        return _run(self.inside(*argv), timeout_s)


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """Run a machine for the body.

    Args:
        folder: For its files; emptied first. Not below a folder that is hidden inside.

    Raises:
        KubeError: Not root, no room for another network, or the kernel refuses.
    """
    if os.geteuid() != 0:
        raise KubeError("a real node needs root: run this as root, or use a control plane alone")
    for path in (folder.resolve(), default_root().resolve()):
        if any(path.is_relative_to(hidden) for hidden in _HIDDEN):
            raise KubeError(f"{path} is hidden inside a node: choose one not in {_HIDDEN}")
    with claimed(folder):
        _make_cgroups(folder)
        init = Process("machine", _first_process(folder), folder / "log" / "machine.log")
        try:
            init.start()
            yield _connected(folder, init)
        finally:
            init.kill()
            remove_cgroups(folder)


def _first_process(folder: Path) -> list[str]:
    steps = ["mount --make-rshared /"]
    steps += [f"mount -t tmpfs -o mode=755 tmpfs {path}" for path in _HIDDEN]
    copies = folder / "sysctl"
    copies.mkdir()
    for number, (name, value) in enumerate(_SYSCTLS.items()):
        copy = copies / str(number)
        copy.write_text(f"{value}\n")
        steps.append(f"mount --bind {shlex.quote(str(copy))} /proc/sys/{name}")
    steps.append(f"exec {shlex.quote(program('pause'))}")
    return [
        *("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"),
        *("sh", "-ec", "\n".join(steps)),
    ]


def _connected(folder: Path, init: Process) -> Machine:
    pid = _pid_of_child(init)
    wait_until(lambda: _is_pause(init, pid), "the machine's mounts", _READY_S)
    made = Machine(folder, _connect(pid), init, pid)
    routes = [
        "link set lo up",
        f"addr add {made.address}/24 dev eth0",
        "link set eth0 up",
        f"route add {SERVICES} via {made.gateway}",  # only so that they leave towards iptables
    ]
    for words in routes:
        made.run("ip", *words.split())
    made.run("sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward")
    outer = _cable(made.number)
    for words in (
        f"addr add {made.gateway}/24 dev {outer}",
        f"link set {outer} up",
        f"route replace {made.pods} via {made.address}",
    ):
        _run(["ip", *words.split()])
    return made


def _pid_of_child(init: Process) -> int:
    def children() -> list[psutil.Process]:
        init.check()
        return psutil.Process(init.pid).children()

    wait_until(lambda: bool(children()), "the machine's first process", _READY_S)
    (child,) = children()
    return child.pid


def _is_pause(init: Process, pid: int) -> bool:
    init.check()
    return psutil.Process(pid).name() == "pause"


def _cable(number: int) -> str:
    return f"rollout-kube{number}"


def _connect(pid: int) -> int:
    """Put a cable into the first network that nobody uses and return the network's number."""
    for number in range(_NETWORKS):
        try:
            add = f"ip link add {_cable(number)} type veth peer name eth0 netns {pid}"
            _run(add.split())
        except KubeError as error:
            if "File exists" not in str(error):
                raise
        else:
            return number
    raise KubeError(f"{_NETWORKS} machines run already: stop some with `python -m hack.kube down`")


def _make_cgroups(folder: Path) -> None:
    for root in cgroup_roots():
        group = root / cgroup_name(folder)
        group.mkdir(exist_ok=True)
        for name in ("cpuset.cpus", "cpuset.mems"):  # version 1 starts them empty
            if (group / name).exists() and not (group / name).read_text().strip():
                (group / name).write_text((root / name).read_text())


def _run(argv: Sequence[str], timeout_s: float = 30) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout_s)
    if done.returncode != 0:
        raise KubeError(f"{shlex.join(argv)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
