"""A control plane is ready in seconds, keeps its place, and leaves nothing whatever happens."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from hack.kube import ControlPlane, KubectlFailed, KubeError, control_plane, scratch
from hack.kube.folder import cgroup_name, cgroup_roots, claimed
from tests.support.cluster import require_kubernetes, require_node

pytestmark = pytest.mark.kubernetes
ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hack.kube", f"--folder={folder}", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
    )


def running_in(folder: Path) -> list[str]:
    found = []
    for process in psutil.process_iter(["name", "cmdline", "status"]):
        words = " ".join(process.info["cmdline"] or ())
        if str(folder) in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(words)
    return found


def gone(folder: Path) -> bool:
    deadline = time.monotonic() + 10
    while running_in(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not running_in(folder)


def test_it_answers_with_the_version_that_was_built(plane: ControlPlane) -> None:
    assert '"gitVersion": "v1.34.4"' in plane.kubectl("version", "--output=json")
    assert "default" in plane.kubectl("get", "serviceaccounts")


def test_its_programs_have_no_privileges(plane: ControlPlane) -> None:
    for process in plane.processes.values():
        status = Path(f"/proc/{process.pid}/status").read_text()
        (effective,) = [line for line in status.splitlines() if line.startswith("CapEff")]
        assert int(effective.split()[1], 16) == 0, process.name


def test_what_kubectl_refuses_is_told_with_its_words(plane: ControlPlane) -> None:
    with pytest.raises(KubectlFailed, match=r'kubectl get pods nobody: .*"nobody" not found'):
        plane.kubectl("get", "pods", "nobody")


def test_users_and_service_accounts_are_held_to_their_roles(plane: ControlPlane) -> None:
    plane.kubectl("create", "serviceaccount", "reader")
    plane.kubectl("create", "rolebinding", "read", "--clusterrole=view", "--user=jo")
    plane.kubectl(
        "create", "rolebinding", "account", "--clusterrole=view", "--serviceaccount=default:reader"
    )
    for kubeconfig in (
        plane.user_kubeconfig("jo", "jo"),
        plane.account_kubeconfig("reader"),
    ):
        as_user = f"--kubeconfig={kubeconfig}"
        assert plane.kubectl(as_user, "get", "configmaps", "--output=name")
        with pytest.raises(KubectlFailed, match="Forbidden"):
            plane.kubectl(as_user, "get", "secrets")


def test_writes_are_counted_from_the_log_of_the_server(plane: ControlPlane) -> None:
    plane.kubectl("create", "configmap", "counted", "--from-literal=a=b")
    plane.kubectl("get", "configmap", "counted")
    about = [r for r in plane.requests() if (r.resource, r.name) == ("configmaps", "counted")]
    assert [(r.verb, r.user, r.code) for r in about if r.is_write] == [("create", "admin", 201)]
    assert ("get", 200) in [(r.verb, r.code) for r in about]


@pytest.mark.timeout(180)
def test_two_run_side_by_side_and_a_restarted_server_keeps_url_and_objects(
    plane: ControlPlane,
) -> None:
    with scratch() as folder, control_plane(folder) as other:
        assert other.url != plane.url
        other.kubectl("create", "configmap", "kept")
        other.restart()
        assert "configmap/kept" in other.kubectl("get", "configmaps", "--output=name")
        with pytest.raises(KubectlFailed, match='"kept" not found'):
            plane.kubectl("get", "configmap", "kept")
        with pytest.raises(KubeError, match="no audit log is kept"):
            other.requests()
    assert not folder.exists()
    assert running_in(folder) == []


def test_a_folder_in_use_is_refused_and_names_the_process() -> None:
    with scratch() as folder:
        done = command(folder, "up")
        assert done.returncode == 1
        assert f"runs already in {folder} (process {os.getpid()})" in done.stderr


def test_a_folder_that_is_too_deep_for_a_socket_is_refused(tmp_path: Path) -> None:
    require_kubernetes()
    with (
        pytest.raises(KubeError, match="too long"),
        control_plane(tmp_path / ("x" * 120)),
    ):
        pass


def test_without_set_up_the_remedy_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROLLOUT_CACHE", str(tmp_path))
    with (
        scratch() as folder,
        pytest.raises(KubeError, match="run `make setup-kubernetes`"),
        control_plane(folder),
    ):
        pass


def test_a_program_that_ends_is_told_with_its_log() -> None:
    require_kubernetes()
    with (
        scratch() as folder,
        pytest.raises(KubeError, match=r"kube-apiserver ended.*\n.*unknown flag: --nonsense"),
        control_plane(folder, api_server_flags=["--nonsense"]),
    ):
        pass


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", ["control plane", "node"])
def test_the_command_starts_and_ends_a_cluster_and_survives_a_kill(kind: str) -> None:
    require_node() if kind == "node" else require_kubernetes()
    flags = ["--node"] if kind == "node" else []
    with scratch() as outer:
        folder = outer / "c"
        up = command(folder, "up", *flags)
        assert up.returncode == 0, up.stderr
        assert "kubeconfig" in up.stdout
        if kind == "node":
            assert "node1   Ready" in command(folder, "kubectl", "get", "nodes").stdout
        (keeper,) = [p for p in psutil.process_iter() if is_keeper(p, folder)]
        os.kill(keeper.pid, signal.SIGKILL)
        assert gone(folder)
        assert command(folder, "status").returncode == 1
        assert command(folder, "up").returncode == 0
        assert "NAME" in command(folder, "kubectl", "get", "namespaces").stdout
        assert command(folder, "down").returncode == 0
        assert gone(folder)
        assert not folder.exists()
        assert [root for root in cgroup_roots() if (root / cgroup_name(folder)).exists()] == []
        assert str(folder) not in Path("/proc/self/mountinfo").read_text()


def is_keeper(process: psutil.Process, folder: Path) -> bool:
    try:
        words = process.cmdline()
    except psutil.Error:
        return False
    return f"--folder={folder}" in words and "keep" in words


def test_what_a_killed_run_left_is_removed_by_the_next_start() -> None:
    with scratch() as first:
        base = first.parent
        left = base / "c-left"
        left.mkdir()
        (left / "lock").write_text("1")
        with claimed(base / "c-used"), scratch():
            assert not left.exists()
            assert (base / "c-used").exists()
            assert first.exists()
        with scratch():
            assert not (base / "c-used").exists()
