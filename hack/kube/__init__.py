"""A real Kubernetes for tests and development: its own programs, throw-away data, nothing left.

    with scratch() as folder, control_plane(folder) as plane:
        plane.kubectl("apply", "-f", "crds")

    with scratch() as folder, cluster(folder) as (plane, node):  # as root: pods really run
        node.load_image(root_file_system, "docker.io/local/tool:1")

`python -m hack.kube` does the same for people.
"""

from hack.kube.control_plane import ControlPlane, KubectlFailed, control_plane
from hack.kube.errors import KubeError
from hack.kube.folder import scratch
from hack.kube.machine import Machine, machine
from hack.kube.node import Node, cluster, node

__all__ = [
    "ControlPlane",
    "KubeError",
    "KubectlFailed",
    "Machine",
    "Node",
    "cluster",
    "control_plane",
    "machine",
    "node",
    "scratch",
]
