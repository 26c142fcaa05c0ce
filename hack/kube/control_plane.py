"""The control plane: etcd, API server, controllers and scheduler, started in 2 to 3 seconds.

It needs no privileges. Several run side by side: each reserves its port as long as it lives, so
that the API server can be killed and started again at the same URL.
"""

import base64
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from hack.kube import audit, programs
from hack.kube.errors import KubeError, wait_until
from hack.kube.folder import claimed
from hack.kube.pki import Authority, KeyPair
from hack.kube.process import Process, kubectl

LOOPBACK = "127.0.0.1"
_READY_S = 60.0
_SOCKET_BYTES = 107 + len("unix://")


class KubectlFailed(KubeError):
    """kubectl ended with another status than 0; the message is what it told."""


@dataclass(frozen=True)
class ControlPlane:
    """A control plane that answers."""

    folder: Path
    url: str
    """Of the API server, `https://...`."""
    certificates: programs.Certificates
    processes: dict[str, Process]
    """By name of the program; `kube-apiserver` and those after it may be killed and started."""
    audit_log: Path | None

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of an administrator."""
        return self.folder / "kubeconfig"

    @property
    def authority(self) -> Authority:
        """Who signs certificates that the API server trusts."""
        return self.certificates.authority

    def kubectl(self, *words: str | Path, stdin: str | None = None, timeout_s: float = 60) -> str:
        """Run kubectl as administrator and return what it prints.

        Raises:
            KubectlFailed: It failed.
            subprocess.TimeoutExpired: It took longer than `timeout_s`.
        """
        done = subprocess.run(
            [*kubectl(self.kubeconfig), *map(str, words)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        if done.returncode != 0:
            raise KubectlFailed(f"kubectl {' '.join(map(str, words))}: {done.stderr.strip()}")
        return done.stdout

    def http(self) -> httpx2.Client:
        """Return a client of the API server, as administrator; close it after use."""
        return httpx2.Client(base_url=self.url, verify=self.tls(), timeout=30)

    def tls(self) -> ssl.SSLContext:
        """Return the administrator's TLS settings, for any client library."""
        context = ssl.create_default_context(cafile=str(self.authority.files.public))
        admin = self.certificates.admin
        context.load_cert_chain(admin.public, admin.key)
        return context

    def requests(self) -> list[audit.Request]:
        """Return what was asked so far; needs a control plane with `audit=True`."""
        if self.audit_log is None:
            raise KubeError("no audit log is kept: start the control plane with audit=True")
        return list(audit.requests(self.audit_log))

    def user_kubeconfig(self, name: str, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for a user of this name and these groups, and return its path."""
        pair = self.authority.issue(name, user, organizations=groups)
        return self._write_kubeconfig(self.folder / f"{name}.kubeconfig", _pair_credentials(pair))

    def account_kubeconfig(self, name: str, namespace: str = "default", hours: int = 1) -> Path:
        """Write a kubeconfig with a token of a service account, and return its path."""
        token = self.kubectl(
            *("create", "token", name, f"--namespace={namespace}", f"--duration={hours}h")
        )
        path = self.folder / f"{namespace}-{name}.kubeconfig"
        return self._write_kubeconfig(path, {"token": token.strip()}, namespace)

    def restart(self, name: str = "kube-apiserver") -> None:
        """Kill a program, start it again and wait until the API server is ready."""
        self.processes[name].kill()
        self.processes[name].start()
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until the API server is ready.

        Raises:
            KubeError: A program ended, or it is not ready within a minute.
        """
        wait_until(lambda: self._answers("/readyz"), f"{self.url}/readyz", _READY_S)

    def wait_accounts(self) -> None:
        """Wait until the controllers have made the service account that pods need."""
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        wait_until(lambda: self._answers(account), "the default service account", _READY_S)

    def _answers(self, path: str) -> bool:
        for name in ("etcd", "kube-apiserver"):
            self.processes[name].check()
        try:
            with self.http() as client:
                return client.get(path).status_code == httpx2.codes.OK
        except httpx2.TransportError:
            return False

    def _write_kubeconfig(
        self, path: Path, credentials: dict[str, str], namespace: str = "default"
    ) -> Path:
        authority = _encoded(self.authority.files.public)
        cluster = {"server": self.url, "certificate-authority-data": authority}
        context = {"cluster": "local", "user": "user", "namespace": namespace}
        path.touch(mode=0o600)
        path.write_text(json.dumps(_kubeconfig(cluster, credentials, context)))
        return path

    def write_own_kubeconfigs(self) -> None:
        """Write those of the administrator, the controllers and the scheduler."""
        files = self.certificates
        for name, pair in (
            ("kubeconfig", files.admin),
            ("controllers.kubeconfig", files.controllers),
            ("scheduler.kubeconfig", files.scheduler),
        ):
            self._write_kubeconfig(self.folder / name, _pair_credentials(pair))


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _pair_credentials(pair: KeyPair) -> dict[str, str]:
    return {
        "client-certificate-data": _encoded(pair.public),
        "client-key-data": _encoded(pair.key),
    }


def _kubeconfig(cluster: Any, user: Any, context: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": cluster}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "local", "context": context}],
        "current-context": "local",
    }


@contextmanager
def control_plane(
    folder: Path,
    *,
    address: str = LOOPBACK,
    audit: bool = False,
    api_server_flags: Sequence[str] = (),
) -> Iterator[ControlPlane]:
    """Run a control plane for the body.

    Args:
        folder: For its certificates, kubeconfig and logs; made if it is not there, emptied first.
        address: Of this machine, to listen at; `cluster` chooses one that a node can reach.
        audit: Keep a log of all requests: `ControlPlane.requests`.
        api_server_flags: Further flags of kube-apiserver.

    Raises:
        KubeError: Kubernetes is not set up, a program ended or is not ready in time, or another
            process uses the folder.
    """
    with claimed(folder), _reserved_port(address) as port:
        plane = _prepare(folder, address, port, audit, tuple(api_server_flags))
        try:
            for name in ("etcd", "kube-apiserver"):
                plane.processes[name].start()
            plane.wait_ready()
            for name in ("kube-controller-manager", "kube-scheduler"):
                plane.processes[name].start()
            plane.wait_accounts()
            yield plane
        finally:
            for process in reversed(plane.processes.values()):
                process.kill()


@contextmanager
def _reserved_port(address: str) -> Iterator[int]:
    """Hold a free port that only a program of this user which asks to share it can listen on."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((address, 0))
        port: int = holder.getsockname()[1]
        yield port


def _prepare(
    folder: Path, address: str, port: int, with_audit: bool, flags: tuple[str, ...]
) -> ControlPlane:
    if len(programs.etcd_url(folder)) > _SOCKET_BYTES:
        raise KubeError(f"{folder} is too long for a socket's path: choose another folder")
    files = programs.certificates(folder / "pki", address)
    policy, log = folder / "audit-policy.json", folder / "audit.log"
    policy.write_text(json.dumps(audit.POLICY))
    server = programs.ApiServer(
        *(folder, address, port, files),
        audit_policy=policy if with_audit else None,
        audit_log=log,
        flags=flags,
    )
    commands = {
        "etcd": programs.etcd(folder),
        "kube-apiserver": server.command(),
        "kube-controller-manager": programs.controller_manager(
            folder / "controllers.kubeconfig", files
        ),
        "kube-scheduler": programs.scheduler(folder / "scheduler.kubeconfig"),
    }
    processes = {
        name: Process(name, command, folder / "log" / f"{name}.log")
        for name, command in commands.items()
    }
    url = f"https://{address}:{port}"
    plane = ControlPlane(folder, url, files, processes, log if with_audit else None)
    plane.write_own_kubeconfigs()
    return plane
