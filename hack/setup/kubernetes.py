"""Kubernetes and etcd, built from source as tool dependencies of the modules in `hack/kube/go`.

The modules name every version and checksum, so the same programs come out everywhere. What a real
node needs besides them (containerd, runc, CNI plug-ins, iptables) are the distribution's packages.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from hack.setup.component import REPOSITORY, Component, Session
from hack.setup.errors import SetupError
from hack.setup.shell import output
from hack.setup.store import digest
from hack.setup.system import Package, install_missing, missing_packages

MODULES = REPOSITORY / "hack" / "kube" / "go"
PROGRAMS = {
    "kubernetes": (
        *("kube-apiserver", "kube-controller-manager", "kube-scheduler"),
        *("kubectl", "kubelet", "kube-proxy"),
    ),
    "etcd": ("etcd",),
    "pause": ("pause",),
}
_SOURCES = {"etcd": "go.etcd.io/etcd/server/v3", "pause": "."}
_TAGS = "providerless"
CNI = Path("/usr/lib/cni")
NODE_PACKAGES = (
    Package("containerd", command="containerd"),
    Package("runc", command="runc"),
    Package("containernetworking-plugins", file=str(CNI / "ptp")),
    Package("iptables", command="iptables"),
    Package("iproute2", command="ip"),
    Package("util-linux", command="nsenter"),
)


def required(module: Path, dependency: str) -> str:
    """Return the version of a dependency that a module asks for, without the `v`."""
    found = re.search(rf"^\s*(?:require )?{re.escape(dependency)} v(\S+)", module.read_text(), re.M)
    assert found, f"{module} does not require {dependency}"
    return found[1]


VERSION = required(MODULES / "kubernetes" / "go.mod", "k8s.io/kubernetes")


def check_go() -> None:
    """Make sure that the Go on the PATH is new enough for all modules.

    Raises:
        SetupError: There is none, or it is older.
    """
    needed = max(_release(path.read_text()) for path in MODULES.glob("*/go.mod"))
    wanted = ".".join(map(str, needed))
    if shutil.which("go") is None:
        raise SetupError(f"no `go` on the PATH: install Go {wanted} or newer (https://go.dev/dl)")
    present = output("go", "env", "GOVERSION").strip()
    if _release(f"go {present.removeprefix('go')}") < needed:
        raise SetupError(f"`go` is {present}: Go {wanted} or newer is needed (https://go.dev/dl)")


def _release(text: str) -> tuple[int, int]:
    found = re.search(r"^go (\d+)\.(\d+)", text, re.M)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _install(session: Session) -> None:
    inputs = sorted(path for path in MODULES.rglob("*") if path.is_file())
    recipe = digest(*(path.read_bytes() for path in inputs), _TAGS, _linker_flags("kubernetes"))
    entry = session.provide(
        f"kubernetes-{VERSION}-{recipe}",
        f"Kubernetes {VERSION}",
        lambda folder: _build(session, folder),
    )
    for names in PROGRAMS.values():
        for name in names:
            session.store.link("bin", name, entry / name)


def _build(session: Session, folder: Path) -> None:
    check_go()
    session.tell("compiling takes 5 to 15 minutes and 2 GB; this is done once")
    for module, names in PROGRAMS.items():
        for name in names:
            _compile(session, module, name, folder / name)
            session.tell(f"{name}: built")


def _compile(session: Session, module: str, name: str, target: Path) -> None:
    source = _SOURCES.get(module, f"k8s.io/kubernetes/cmd/{name}")
    session.shell.run(
        *("nice", "go", "build", "-mod=readonly", "-buildvcs=false", "-trimpath"),
        *("-tags", _TAGS, "-ldflags", _linker_flags(module), "-o", target, source),
        cwd=MODULES / module,
        env={"CGO_ENABLED": "0"},
        remedy="check the network and GOPROXY",
    )


def _linker_flags(module: str) -> str:
    if module != "kubernetes":
        return "-s -w"
    major, minor, _ = VERSION.split(".")
    stamps = {
        "gitVersion": f"v{VERSION}",
        "gitMajor": major,
        "gitMinor": minor,
        "gitTreeState": "clean",
    }
    package = "k8s.io/component-base/version"
    return " ".join(["-s -w", *(f"-X {package}.{key}={value}" for key, value in stamps.items())])


def _install_node(session: Session) -> None:
    install_missing(session, lambda: missing_packages(NODE_PACKAGES))


KUBERNETES = Component(
    "kubernetes", f"Kubernetes {VERSION} and etcd, compiled", _install, default=False
)
KUBERNETES_NODE = Component(
    "kubernetes-node",
    "packages of a real node: containerd, runc, CNI plug-ins (as root)",
    _install_node,
    needs=("kubernetes",),
    default=False,
)
