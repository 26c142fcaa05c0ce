"""The operator and the gateway as their own processes at a real API server, for tests."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2

from hack.kube import ControlPlane
from hack.setup.store import default_root

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(sys.executable).parent
CHART = ROOT / "helm" / "rollout-operator"
RELEASE, HOME, SPACE = "rollout", "rollout-system", "trainers"
FINALIZER = "rollout-operator.dev/gateway"
GROUP = "/apis/rollout-operator.dev/v1alpha1"
CONTAINER = "/api/v1"
LEASE_SECONDS = 5
Object = dict[str, Any]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class KubeSystem:
    """A gateway and operators in a folder, with the API server's administrator to look on."""

    def __init__(self, plane: ControlPlane, api: httpx2.Client, folder: Path) -> None:
        self.plane, self.api, self.folder = plane, api, folder
        self.gateway_url = f"http://127.0.0.1:{free_port()}"
        self._gateway: subprocess.Popen[bytes] | None = None
        self.operators: dict[str, subprocess.Popen[bytes]] = {}

    def install(self) -> None:
        """Create the namespaces and the operator's account and rights from the chart."""
        for name in (HOME, SPACE):
            self.plane.kubectl("create", "namespace", name)
        manifest = subprocess.run(
            [
                *(default_root() / "bin" / "helm", "template", RELEASE, CHART),
                *("--namespace", HOME, "--show-only", "templates/operator-rbac.yaml"),
            ],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        self.plane.kubectl("apply", "-f", "-", stdin=manifest)
        account = ("serviceaccount/default", f"--namespace={SPACE}")
        self.plane.kubectl("wait", *account, "--for=create", "--timeout=20s")

    def start_gateway(self) -> None:
        """Start the gateway on TCP and wait until it answers."""
        port = self.gateway_url.rpartition(":")[2]
        self._gateway = self._popen("gateway", f"--state-dir={self.folder}", f"--port={port}")
        wait_for(self._gateway_answers, "the gateway")

    def _gateway_answers(self) -> bool:
        try:
            return httpx2.get(f"{self.gateway_url}/readyz", trust_env=False).is_success
        except httpx2.TransportError:
            return False

    def start_operator(self, identity: str = "one") -> None:
        """Start an operator with the token of its service account; it is not waited for."""
        config = self.plane.account_kubeconfig(f"{RELEASE}-operator", HOME)
        self.operators[identity] = self._popen(
            "operator",
            f"--gateway-url={self.gateway_url}",
            f"--lease-namespace={HOME}",
            f"--lease-seconds={LEASE_SECONDS}",
            f"--identity={identity}",
            KUBECONFIG=str(config),
        )

    def kill_operator(self, identity: str = "one") -> None:
        """Kill an operator without warning."""
        process = self.operators.pop(identity)
        process.kill()
        process.wait()

    def stop_operator(self, identity: str = "one") -> int:
        """Ask an operator to stop and return its status."""
        process = self.operators.pop(identity)
        process.terminate()
        return process.wait(timeout=15)

    def close(self) -> None:
        """End all processes."""
        for identity in list(self.operators):
            self.kill_operator(identity)
        if self._gateway is not None:
            self._gateway.kill()
            self._gateway.wait()

    def _popen(self, program: str, *words: str, **env: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{program}.log").open("ab") as log:
            return subprocess.Popen(
                [BIN / f"rollout-{program}", *words],
                env={**os.environ, **env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def log(self) -> str:
        """What the operators told."""
        return (self.folder / "operator.log").read_text()

    def path(self, plural: str, name: str = "") -> str:
        """Path of an object, or of all of a kind, in the tests' namespace."""
        root = CONTAINER if plural in {"pods", "events"} else GROUP
        return f"{root}/namespaces/{SPACE}/{plural}" + (f"/{name}" if name else "")

    def get(self, plural: str, name: str) -> Object | None:
        """An object, if it is there."""
        answer = self.api.get(self.path(plural, name))
        if answer.status_code == httpx2.codes.NOT_FOUND:
            return None
        answer.raise_for_status()
        found: Object = answer.json()
        return found

    def items(self, plural: str) -> list[Object]:
        """All objects of a kind."""
        found: list[Object] = self.api.get(self.path(plural)).raise_for_status().json()["items"]
        return found

    def apply(self, manifest: Object) -> Object:
        """Create an object in the tests' namespace."""
        plural = f"{manifest['kind'].lower()}s"
        answer = self.api.post(self.path(plural), json=manifest)
        assert answer.is_success, answer.text
        made: Object = answer.json()
        return made

    def delete(self, plural: str, name: str) -> None:
        """Ask for an object's deletion."""
        self.api.delete(self.path(plural, name)).raise_for_status()

    def patch(self, plural: str, name: str, body: Object) -> None:
        """Merge fields into an object."""
        headers = {"Content-Type": "application/merge-patch+json"}
        self.api.patch(self.path(plural, name), json=body, headers=headers).raise_for_status()

    def pods_of(self, job: str) -> dict[str, Object]:
        """The pods that a job controls, by name."""
        return {
            pod["metadata"]["name"]: pod
            for pod in self.items("pods")
            if any(ref["name"] == job for ref in pod["metadata"].get("ownerReferences", ()))
        }

    def condition(self, plural: str, name: str, kind: str) -> tuple[str, str]:
        """Status and reason of a condition; empty ones while it was not stated."""
        found = self.get(plural, name) or {}
        for condition in found.get("status", {}).get("conditions", ()):
            if condition["type"] == kind:
                return condition["status"], condition["reason"]
        return "", ""


def wait_for(holds: Callable[[], object], what: str, seconds: float = 30) -> None:
    """Look until something holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"waited {seconds:g} s in vain for {what}"
        time.sleep(0.05)


def make_job(name: str, *, samples: int = 1, **spec: Any) -> Object:
    task = {"id": "a", "instruction": "1+1?", "grading": {"answer": "2"}}
    return {
        "apiVersion": "rollout-operator.dev/v1alpha1",
        "kind": "RolloutJob",
        "metadata": {"name": name},
        "spec": {
            "tasks": {"inline": [task]},
            "handler": "math",
            "samplesPerTask": samples,
            "llm": {"poolRef": {"name": "model"}},
            "sandbox": {"image": "python"},
            **spec,
        },
    }


def make_pool(url: str, name: str = "model") -> Object:
    return {
        "apiVersion": "rollout-operator.dev/v1alpha1",
        "kind": "LLMPool",
        "metadata": {"name": name},
        "spec": {"model": "m", "tokenizer": "t", "endpoints": [{"url": url}]},
    }
