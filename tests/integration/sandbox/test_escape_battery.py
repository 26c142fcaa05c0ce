"""No attack from inside a sandbox gets through: both backends, as root and as a plain user."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from rollout_sandbox.paths import cache_root
from rollout_sandbox.probe import apptainer_program
from rollout_sandbox.runtime import ensure_runtime
from rollout_sandbox.trees import remove_tree
from tests.integration.sandbox.battery import ATTACKS

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(180)]

IMAGES = {"apptainer": "busybox.sif", "bubblewrap": "busybox"}
# The plain user may read what it needs of this checkout and interpreter, and no more: the right is
# of no use in the sandbox's user namespace.
PLAIN_USER = (
    *("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--"),
)


@pytest.fixture(scope="session")
def place():
    """A directory that any user can reach, unlike pytest's own."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o777)
    yield directory
    remove_tree(directory)


@pytest.fixture(scope="session")
def run_battery(place):
    """Run the battery at most once for each backend and user."""
    if program := apptainer_program():
        shutil.copytree(program.resolve().parents[1], place / "apptainer", symlinks=True)
    runtime = ensure_runtime(cache_root())
    shutil.copytree(runtime, place / "runtime" / runtime.name, symlinks=True)
    (place / "runtime" / ".lock").touch()
    for path in (place / "runtime", *(place / "runtime").iterdir()):
        path.chmod(0o777)

    @cache
    def run(backend: str, user: str) -> dict[str, str]:
        image = (cache_root() / "images" / IMAGES[backend]).resolve()
        copy = place / f"{user}-{image.name}"
        shutil.copytree(image, copy, symlinks=True) if image.is_dir() else shutil.copy(image, copy)
        (root := place / f"{backend}-{user}").mkdir(mode=0o777)
        root.chmod(0o777)
        command = [sys.executable, "-m", "tests.integration.sandbox.battery", backend]
        done = subprocess.run(
            [*(PLAIN_USER if user == "plain" else ()), *command, str(copy), str(root)],
            env={
                "PATH": f"{place}/apptainer/bin:{os.environ['PATH']}",
                "HOME": str(root),
                "ROLLOUT_CACHE": str(place),
                "ROLLOUT_TOKEN": f"token-{os.urandom(8).hex()}",
            },
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[3],
        )
        if done.returncode != 0:
            return dict.fromkeys(ATTACKS, f"it broke: {done.stderr[-600:]}")
        return json.loads(done.stdout)

    return run


@pytest.mark.parametrize("user", ["current", "plain"])
@pytest.mark.parametrize("backend", IMAGES)
@pytest.mark.parametrize("attack", ATTACKS)
def test_an_attack_fails(attack, backend, user, run_battery, need_backend, need_image):
    need_backend(backend)
    need_image(IMAGES[backend])
    if user == "plain" and os.geteuid() != 0:
        pytest.skip("the current user is a plain one already")
    seen = run_battery(backend, user)[attack]
    assert seen == "over\n", seen
