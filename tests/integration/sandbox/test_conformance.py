"""Every backend that works here passes every check, on a rich image and on one without bash."""

import pytest

from rollout_sandbox.conformance import CHECKS, Subject, run_check
from rollout_sandbox.manager import SandboxManager

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(60)]

COMBINATIONS = [
    ("apptainer", "python.sif"),
    ("apptainer", "python"),
    ("bubblewrap", "python"),
    ("bubblewrap", "busybox"),
]


@pytest.mark.parametrize(("backend", "image"), COMBINATIONS)
@pytest.mark.parametrize("name", CHECKS)
async def test_backend_conforms(name, backend, image, root, need_backend, need_image):
    need_backend(backend)
    path = need_image(image)
    async with SandboxManager(root, owner="conformance", backend=backend) as manager:
        await run_check(name, Subject(manager, str(path)))
