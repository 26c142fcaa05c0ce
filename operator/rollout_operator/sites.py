"""Where pods run: all that differs between one machine and Kubernetes when they are built."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Literal, Protocol

from rollout_crds.locations import MAX_SOCKET_PATH
from rollout_crds.pod import Container, Pod, PodEnvVar, PodSpec
from rollout_operator.names import digest

Role = Literal["stage", "engine"]
RestartPolicy = Literal["Always", "OnFailure", "Never"]
LOCAL_NODE = "local"
"""Name of the node that runs pods as processes of its machine."""
SOCKET_VARIABLE = "ROLLOUT_SOCKET"
"""Names the Unix socket that a pod listens on; its node removes what a killed one has left."""
ENGINE_PORT = 8000


class Site(Protocol):
    """Where pods run."""

    def place(self, role: Role, container: Container, restart_policy: RestartPolicy) -> PodSpec:
        """Make the spec of a pod there."""
        ...

    def listen(self, pod_name: str) -> tuple[list[PodEnvVar], list[str]]:
        """Environment and arguments that make an engine listen."""
        ...

    def engine_url(self, pod_name: str, pod: Pod | None) -> str | None:
        """Where the engine of a pod answers; None: that is not known yet."""
        ...


@dataclass(frozen=True)
class LocalSite:
    """The node of this machine, where pods are processes and engines listen on Unix sockets."""

    node_name: str
    run_dir: PurePath
    """Directory for the engines' Unix sockets."""

    def place(self, role: Role, container: Container, restart_policy: RestartPolicy) -> PodSpec:
        """Bind a pod to the node."""
        return PodSpec(
            containers=[container], node_name=self.node_name, restart_policy=restart_policy
        )

    def listen(self, pod_name: str) -> tuple[list[PodEnvVar], list[str]]:
        """Listen on a socket, which the node prepares."""
        variable = PodEnvVar(name=SOCKET_VARIABLE, value=self._socket(pod_name))
        return [variable], ["--uds", f"$({SOCKET_VARIABLE})"]

    def engine_url(self, pod_name: str, pod: Pod | None) -> str | None:
        """The engine's socket, which is known before the pod is."""
        return f"unix://{self._socket(pod_name)}"

    def _socket(self, pod_name: str) -> str:
        """Path of an engine's socket, with a hash for a name when it would be too long."""
        path = self.run_dir / f"{pod_name}.sock"
        if len(str(path).encode()) <= MAX_SOCKET_PATH:
            return str(path)
        return str(self.run_dir / f"{digest(pod_name)}.sock")


_RESTRICTED: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
}
_SECCOMP: dict[Role, str] = {"stage": "Unconfined", "engine": "RuntimeDefault"}
"""The usual profile forbids the user namespaces that sandboxes consist of."""
_WORK_DIR = "/var/lib/rollout"


@dataclass(frozen=True)
class PodTemplate:
    """What a cluster's administrator adds to the pods of a role."""

    image: str
    pod: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of the pod's spec, such as `nodeSelector`, `tolerations` or `priorityClassName`."""
    container: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Fields of its container, such as `resources` or `volumeMounts`."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class KubernetesSite:
    """A Kubernetes cluster, whose scheduler chooses the node and where engines listen on TCP."""

    gateway_url: str
    """Where pods reach the gateway."""
    templates: Mapping[Role, PodTemplate]

    def place(self, role: Role, container: Container, restart_policy: RestartPolicy) -> PodSpec:
        """Complete a pod: image, access to the gateway, a work folder, least rights."""
        template = self.templates[role]
        mount = {"name": "work", "mountPath": _WORK_DIR}
        complete = {
            "image": template.image,
            "securityContext": _RESTRICTED,
            **container.model_dump(by_alias=True, exclude_defaults=True),
            **template.container,
            "env": [*self._env(template), *(e.model_dump(by_alias=True) for e in container.env)],
            "volumeMounts": [mount, *template.container.get("volumeMounts", ())],
        }
        spec = {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"seccompProfile": {"type": _SECCOMP[role]}},
            "restartPolicy": restart_policy,
            **template.pod,
            "containers": [complete],
            "volumes": [{"name": "work", "emptyDir": {}}, *template.pod.get("volumes", ())],
        }
        return PodSpec.model_validate(spec)

    def _env(self, template: PodTemplate) -> list[dict[str, Any]]:
        own_name = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}
        values = {
            "ROLLOUT_GATEWAY_URL": self.gateway_url,
            "ROLLOUT_WORK_DIR": f"{_WORK_DIR}/work",
            **template.env,
        }
        return [
            {"name": "ROLLOUT_POD_NAME", "valueFrom": own_name},
            *({"name": name, "value": value} for name, value in values.items()),
        ]

    def listen(self, pod_name: str) -> tuple[list[PodEnvVar], list[str]]:
        """Listen on the pod's address."""
        return [], ["--host", "0.0.0.0", "--port", str(ENGINE_PORT)]  # noqa: S104 - in a pod

    def engine_url(self, pod_name: str, pod: Pod | None) -> str | None:
        """The pod's address, once it has one."""
        address = pod.status.pod_ip if pod is not None else ""
        host = f"[{address}]" if ":" in address else address
        return f"http://{host}:{ENGINE_PORT}" if host else None
