"""Every backend that works here passes every check, on a rich image and on one without bash."""

from pathlib import Path

import pytest

from rollout_sandbox.conformance import CHECKS, Subject, run_check
from rollout_sandbox.errors import SandboxUnavailable
from rollout_sandbox.manager import SandboxManager
from rollout_sandbox.paths import cache_root
from rollout_sandbox.probe import choose, probe

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(180)]

COMBINATIONS = [
    ("apptainer", "python.sif"),
    ("apptainer", "python"),
    ("bubblewrap", "python"),
    ("bubblewrap", "busybox"),
]


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sandboxes")


@pytest.fixture(scope="session")
def capabilities(root: Path):
    return probe(root)


@pytest.mark.parametrize(("backend", "image"), COMBINATIONS)
@pytest.mark.parametrize("name", CHECKS)
async def test_backend_conforms(name, backend, image, root, capabilities):
    path = cache_root() / "images" / image
    if not path.exists():
        pytest.skip(f"{path} is missing: run `python -m hack.setup images`")
    try:
        choose(capabilities, backend)
    except SandboxUnavailable as error:
        pytest.skip(str(error))
    async with SandboxManager(root, owner="conformance", backend=backend) as manager:
        await run_check(name, Subject(manager, str(path)))
