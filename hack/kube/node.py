"""A real node: containerd, kubelet and kube-proxy in a machine of its own, so that pods really run.

It has no way out: pods reach each other, services, the API server and this machine, nothing else.
There is no DNS in pods; use the address of a service.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import psutil

from hack.kube.control_plane import ControlPlane, control_plane
from hack.kube.errors import wait_until
from hack.kube.folder import claimed
from hack.kube.images import DEFAULT, Config, write_archive
from hack.kube.machine import Machine, machine
from hack.kube.process import Process, program
from hack.setup.kubernetes import CNI

PAUSE = "docker.io/local/pause:1"
_NAMESPACE = "k8s.io"
_SOCKET = "/run/containerd/containerd.sock"
_ENV = ("env", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
_READY_S = 90.0
_PODS = "10.244.0.0/16"


@dataclass(frozen=True)
class Node:
    """A node that is Ready."""

    name: str
    folder: Path
    plane: ControlPlane
    machine: Machine
    processes: dict[str, Process]
    """`containerd`, `kubelet` and `kube-proxy`."""

    def load_image(self, root: Path, name: str, config: Config = DEFAULT) -> None:
        """Make an image of a root file system and give it to the node.

        Args:
            root: Folder that becomes the container's `/`.
            name: Full name with a tag; pods use it with `imagePullPolicy: IfNotPresent` or
                `Never`, since the node reaches no registry.
            config: How a container of it starts.

        Raises:
            KubeError: containerd refuses it.
            ValueError: The name has no tag.
        """
        archive = self.folder / "image.tar"
        try:
            write_archive(root, name, archive, config)
            self.import_image(archive)
        finally:
            archive.unlink(missing_ok=True)

    def import_image(self, archive: Path) -> None:
        """Give the node an image from an archive.

        Raises:
            KubeError: containerd refuses it.
        """
        self.machine.run("ctr", f"--namespace={_NAMESPACE}", "images", "import", str(archive))

    def kill(self, name: str) -> None:
        """Kill one of the node's programs; its pods go on."""
        process = self.processes[name]
        if process.is_running:
            for child in psutil.Process(process.pid).children():
                child.kill()  # nsenter, its parent, then ends too
            process.wait()

    def start(self, name: str) -> None:
        """Start a program again that was killed."""
        self.processes[name].start()

    def wait_ready(self) -> None:
        """Wait until the API server calls the node Ready.

        Raises:
            KubeError: A program ended, or it is not Ready in time.
        """
        wait_until(self._is_ready, f"node {self.name} to be Ready", _READY_S)

    def _is_ready(self) -> bool:
        for process in self.processes.values():
            process.check()
        with self.plane.http() as client:
            answer = client.get(f"/api/v1/nodes/{self.name}")
        if answer.status_code != httpx2.codes.OK:  # kubelet has not registered it yet
            return False
        conditions = answer.json()["status"].get("conditions", [])
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    def wait_containerd(self) -> None:
        """Wait until containerd listens."""
        socket = Path(f"/proc/{self.machine.pid}/root{_SOCKET}")
        wait_until(socket.exists, "containerd", _READY_S)


@contextmanager
def node(plane: ControlPlane, host: Machine, *, name: str = "node1") -> Iterator[Node]:
    """Run a node of `plane` in the machine `host` for the body, as root.

    Raises:
        KubeError: A program is not installed, ended, or the node is not Ready in time.
    """
    folder = host.folder / "node"
    folder.mkdir()
    made = Node(name, folder, plane, host, _processes(plane, host, folder, name))
    try:
        made.start("containerd")
        made.wait_containerd()
        _load_pause(made)
        made.start("kubelet")
        made.start("kube-proxy")
        made.wait_ready()
        yield made
    finally:
        for process in reversed(made.processes):
            made.kill(process)


@contextmanager
def cluster(
    folder: Path, *, audit: bool = False, api_server_flags: Sequence[str] = ()
) -> Iterator[tuple[ControlPlane, Node]]:
    """Run a control plane and one real node for the body, as root.

    Raises:
        KubeError: As of `machine`, `control_plane` and `node`.
    """
    with ExitStack() as stack:
        stack.enter_context(claimed(folder))
        host = stack.enter_context(machine(folder))
        plane = stack.enter_context(
            control_plane(
                folder, address=host.gateway, audit=audit, api_server_flags=api_server_flags
            )
        )
        yield plane, stack.enter_context(node(plane, host))


def _load_pause(node: Node) -> None:
    root = node.folder / "pause"
    root.mkdir()
    shutil.copy2(program("pause"), root / "pause")
    node.load_image(root, PAUSE, Config(entrypoint=["/pause"]))


def _processes(plane: ControlPlane, host: Machine, folder: Path, name: str) -> dict[str, Process]:
    (folder / "containerd.toml").write_text(_containerd_config(folder))
    networks = folder / "cni"
    networks.mkdir()
    _write_json(networks / "10-pods.conflist", _pod_network(host, folder))
    settings = folder / "kubelet.json"
    _write_json(settings, _kubelet_config(plane, host, name))
    identity = plane.user_kubeconfig("kubelet", f"system:node:{name}", ["system:nodes"])
    proxy = plane.user_kubeconfig("kube-proxy", "system:kube-proxy")
    commands = {
        "containerd": ["containerd", f"--config={folder}/containerd.toml"],
        "kubelet": [
            *(program("kubelet"), f"--config={settings}", f"--kubeconfig={identity}"),
            *(f"--hostname-override={name}", f"--node-ip={host.address}"),
            *(f"--root-dir={folder}/kubelet", f"--cert-dir={folder}/kubelet-pki"),
        ],
        "kube-proxy": [
            *(program("kube-proxy"), f"--kubeconfig={proxy}", f"--hostname-override={name}"),
            *("--proxy-mode=iptables", f"--cluster-cidr={_PODS}"),
            # The connection table is the whole machine's: leave its limits alone.
            *("--conntrack-max-per-core=0", "--conntrack-tcp-timeout-established=0"),
            "--conntrack-tcp-timeout-close-wait=0",
        ],
    }
    return {
        process: Process(process, host.inside(*_ENV, *argv), folder.parent / f"log/{process}.log")
        for process, argv in commands.items()
    }


def _write_json(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document))


def _pod_network(host: Machine, folder: Path) -> dict[str, Any]:
    addresses = {
        "type": "host-local",
        "dataDir": f"{folder}/addresses",
        "ranges": [[{"subnet": host.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    # Each pod has its own cable to the node: on a bridge answers would bypass the node's iptables.
    plugin = {"type": "ptp", "ipMasq": False, "ipam": addresses}
    return {"cniVersion": "0.4.0", "name": "pods", "plugins": [plugin]}


def _kubelet_config(plane: ControlPlane, host: Machine, name: str) -> dict[str, Any]:
    files = plane.authority.issue(
        "kubelet-server", f"system:node:{name}", hosts=(name, host.address)
    )
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": host.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": False},
            "x509": {"clientCAFile": str(plane.authority.files.public)},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "tlsCertFile": str(files.public),
        "tlsPrivateKeyFile": str(files.key),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{host.cgroup}",
        "containerRuntimeEndpoint": f"unix://{_SOCKET}",
        "failSwapOn": False,
        "resolvConf": "",
        "clusterDomain": "cluster.local",
        "evictionHard": {"memory.available": "50Mi", "nodefs.available": "1%"},
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "nodeStatusUpdateFrequency": "2s",
        "syncFrequency": "5s",
    }


def _containerd_config(folder: Path) -> str:
    unused = [f"io.containerd.snapshotter.v1.{name}" for name in ("btrfs", "zfs", "devmapper")]
    return f"""\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
disabled_plugins = {json.dumps([*unused, "io.containerd.snapshotter.v1.aufs"])}
[grpc]
  address = "{_SOCKET}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{folder}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_hugetlb_controller = true
  # Root in a container may lack the capability to lower the score.
  restrict_oom_score_adj = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI}"
    conf_dir = "{folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""
