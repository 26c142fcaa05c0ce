"""The command lines that enter a sandbox, as they are."""

from pathlib import Path

import pytest

from rollout_sandbox.backends.apptainer import Apptainer
from rollout_sandbox.backends.bubblewrap import _MOUNT, Bubblewrap
from rollout_sandbox.errors import SandboxUnavailable
from rollout_sandbox.ports import KERNEL_SETTINGS, Entry, ImageRef, Place

KERNEL = [f"/proc/{name}" for name in KERNEL_SETTINGS]


def entry(image: ImageRef, root: str = "/node/s0") -> Entry:
    layers = (Path("/node/layers/low"), Path("/node/layers/high"))
    return Entry(image, layers, Place(Path(root)), Path("/cache/runtime/1"), {"PATH": "/bin"})


DIRECTORY = ImageRef("directory", Path("/images/python"), "d")
SIF = ImageRef("sif", Path("/images/python.sif"), "s")


def test_bubblewrap_mounts_the_overlay_with_the_highest_layer_first():
    launch = Bubblewrap().launch(entry(DIRECTORY), ["serve", "{}"])
    assert list(launch.argv) == [
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("unshare", "--user", "--map-root-user", "--mount", "--"),
        *("sh", "-c", _MOUNT, "sh"),
        "lowerdir=/node/layers/high/upper:/node/layers/low/upper:/images/python,"
        "upperdir=/node/s0/overlay/upper,workdir=/node/s0/overlay/work,userxattr",
        "/node/s0/merged",
        *("bwrap", "--unshare-all", "--die-with-parent", "--as-pid-1", "--new-session"),
        *("--hostname", "sandbox", "--bind", "/node/s0/merged", "/"),
        *("--ro-bind", "/cache/runtime/1", "/.rollout/runtime"),
        *("--bind", "/node/s0/run", "/.rollout/run"),
        *("--proc", "/proc"),
        *(word for place in KERNEL for word in ("--ro-bind-try", place, place)),
        *("--dev", "/dev"),
        *("--bind", "/node/s0/scratch/tmp", "/tmp"),
        *("--bind", "/node/s0/scratch/var_tmp", "/var/tmp"),
        *("--chdir", "/", "--", "serve", "{}"),
    ]
    assert launch.env == {"PATH": "/bin"}


@pytest.mark.parametrize("character", [":", ",", "\\"])
def test_bubblewrap_refuses_paths_that_mount_options_can_not_carry(character):
    with pytest.raises(SandboxUnavailable, match="overlay mount can't take"):
        Bubblewrap().launch(entry(DIRECTORY, root=f"/no{character}de/s0"), [])


@pytest.mark.parametrize(
    ("root", "namespace"),
    [(True, ["--userns"]), (False, ["--fakeroot", "--ignore-fakeroot-command"])],
)
def test_apptainer_is_given_nothing_of_the_host(root, namespace):
    backend = Apptainer(Path("/bin/apptainer"), Path("/node/apptainer.conf"), root=root)
    assert list(backend.launch(entry(SIF), ["serve", "{}"]).argv) == [
        *("setpriv", "--pdeathsig", "KILL", "--"),
        *("/bin/apptainer", "--silent", "--config", "/node/apptainer.conf", "exec"),
        *(*namespace, "--pid", "--ipc", "--net", "--network", "none"),
        *("--containall", "--no-home", "--no-init", "--cleanenv", "--no-eval"),
        *("--no-mount", "sys,bind-paths", "--workdir", "/node/s0/scratch"),
        *("--bind", "/cache/runtime/1:/.rollout/runtime:ro"),
        *("--bind", "/node/s0/run:/.rollout/run"),
        *(word for k in KERNEL if Path(k).exists() for word in ("--bind", f"{k}:{k}:ro")),
        *("--overlay", "/node/layers/low:ro", "--overlay", "/node/layers/high:ro"),
        *("--overlay", "/node/s0/overlay", "--pwd", "/"),
        *("/images/python.sif", "serve", "{}"),
    ]
