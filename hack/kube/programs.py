"""How each program of the control plane is called: settings in, command line out."""

from dataclasses import dataclass
from pathlib import Path

from hack.kube.pki import Authority, KeyPair, signing_key
from hack.kube.process import program, unprivileged

SERVICES = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
_NOBODY = "198.51.100.1"  # advertised to pods when there is no node to run them
_ETCD_IN_MEMORY = 'mkdir -p "$0" && mount -t tmpfs -o mode=700 tmpfs "$0" && exec "$@"'


@dataclass(frozen=True)
class Certificates:
    """Everything that the programs show each other, and one administrator."""

    authority: Authority
    server: KeyPair
    admin: KeyPair
    controllers: KeyPair
    scheduler: KeyPair
    kubelet_client: KeyPair
    aggregator: Authority
    aggregator_client: KeyPair
    tokens: KeyPair


def certificates(folder: Path, address: str) -> Certificates:
    """Make them in `folder`, for an API server at `address`."""
    folder.mkdir(mode=0o700, exist_ok=True)
    authority, aggregator = Authority(folder, "ca"), Authority(folder, "aggregator-ca")
    service = "kubernetes.default.svc"
    names = ("kubernetes", "kubernetes.default", service, f"{service}.cluster.local", "localhost")
    masters = ("system:masters",)
    return Certificates(
        authority=authority,
        server=authority.issue(
            "server", "kube-apiserver", hosts=(*names, address, "127.0.0.1", API_SERVICE)
        ),
        admin=authority.issue("admin", "admin", organizations=masters),
        controllers=authority.issue("controllers", "system:kube-controller-manager"),
        scheduler=authority.issue("scheduler", "system:kube-scheduler"),
        kubelet_client=authority.issue("kubelet-client", "kube-apiserver", organizations=masters),
        aggregator=aggregator,
        aggregator_client=aggregator.issue("aggregator-client", "aggregator"),
        tokens=signing_key(folder, "tokens"),
    )


def etcd(folder: Path) -> list[str]:
    """Return the command of an etcd that listens on a socket in `folder`, its data in memory."""
    data, peers = folder / "etcd", "http://127.0.0.1:2380"  # advertised, but it has no peers
    return [
        *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _ETCD_IN_MEMORY),
        *(str(data), *unprivileged([program("etcd")])),
        *("--name=only", f"--data-dir={data}/data", "--unsafe-no-fsync", "--log-level=warn"),
        *(f"--listen-client-urls={etcd_url(folder)}", f"--advertise-client-urls={peers}"),
        *("--listen-peer-urls=http://127.0.0.1:0", f"--initial-advertise-peer-urls={peers}"),
        f"--initial-cluster=only={peers}",
    ]


def etcd_url(folder: Path) -> str:
    """Return where the etcd of `folder` listens."""
    return f"unix://{folder}/etcd.sock"


@dataclass(frozen=True)
class ApiServer:
    """Settings of an API server."""

    folder: Path
    address: str
    port: int
    certificates: Certificates
    audit_policy: Path | None = None
    audit_log: Path | None = None
    flags: tuple[str, ...] = ()

    def command(self) -> list[str]:
        """Return its command."""
        return unprivileged(
            [
                program("kube-apiserver"),
                *("--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction"),
                *("--allow-privileged=true", f"--etcd-servers={etcd_url(self.folder)}"),
                *self._listening(),
                *self._trust(),
                *self._audit(),
                *self.flags,
            ]
        )

    def _listening(self) -> list[str]:
        has_node = not self.address.startswith("127.")
        reconciler = "master-count" if has_node else "none"
        return [
            f"--bind-address={self.address}",
            f"--secure-port={self.port}",
            "--permit-port-sharing=true",  # the port is reserved by whoever starts this
            f"--advertise-address={self.address if has_node else _NOBODY}",
            f"--endpoint-reconciler-type={reconciler}",
            f"--service-cluster-ip-range={SERVICES}",
        ]

    def _trust(self) -> list[str]:
        files = self.certificates
        return [
            f"--cert-dir={self.folder}/pki",
            f"--tls-cert-file={files.server.public}",
            f"--tls-private-key-file={files.server.key}",
            f"--client-ca-file={files.authority.files.public}",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={files.tokens.public}",
            f"--service-account-signing-key-file={files.tokens.key}",
            f"--kubelet-certificate-authority={files.authority.files.public}",
            f"--kubelet-client-certificate={files.kubelet_client.public}",
            f"--kubelet-client-key={files.kubelet_client.key}",
            "--kubelet-preferred-address-types=InternalIP",
            f"--requestheader-client-ca-file={files.aggregator.files.public}",
            "--requestheader-allowed-names=aggregator",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={files.aggregator_client.public}",
            f"--proxy-client-key-file={files.aggregator_client.key}",
        ]

    def _audit(self) -> list[str]:
        if self.audit_policy is None:
            return []
        return [f"--audit-policy-file={self.audit_policy}", f"--audit-log-path={self.audit_log}"]


def controller_manager(kubeconfig: Path, files: Certificates) -> list[str]:
    """Return the command of the controllers."""
    return unprivileged(
        [
            program("kube-controller-manager"),
            *_controller_flags(kubeconfig),
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={files.tokens.key}",
            f"--root-ca-file={files.authority.files.public}",
            f"--cluster-signing-cert-file={files.authority.files.public}",
            f"--cluster-signing-key-file={files.authority.files.key}",
            f"--flex-volume-plugin-dir={kubeconfig.parent}/flex-volumes",
        ]
    )


def scheduler(kubeconfig: Path) -> list[str]:
    """Return the command of the scheduler."""
    return unprivileged([program("kube-scheduler"), *_controller_flags(kubeconfig)])


def _controller_flags(kubeconfig: Path) -> list[str]:
    return [
        f"--kubeconfig={kubeconfig}",
        *("--leader-elect=false", "--secure-port=0"),
        *("--kube-api-qps=500", "--kube-api-burst=1000"),
    ]
