"""A stage learns whether the agent or the infrastructure ended a sandbox."""

import pytest

from rollout_crds.rolloutjob import Sandbox as SandboxSettings
from rollout_crds.wire import PreparedEnvironment
from rollout_stages.blobs import FsspecBlobStore
from rollout_stages.errors import StageError
from rollout_stages.sandboxes import NodeSandboxes

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(60)]


async def test_an_agent_that_fills_the_disk_ends_its_rollout(tmp_path, need_image):
    image = str(need_image("busybox"))
    settings = SandboxSettings.model_validate({"image": image, "resources": {"diskMebibytes": 16}})
    blobs = FsspecBlobStore(f"file://{tmp_path}/blobs")
    sandboxes = NodeSandboxes(tmp_path / "node", "blame", blobs, tmp_path)
    fill = "for i in 1 2 3; do dd if=/dev/zero of=$i bs=1M count=10; done; sleep 20"
    try:
        async with sandboxes.fork(PreparedEnvironment(image=image), settings) as sandbox:
            with pytest.raises(StageError, match="over the limit of 16 MiB") as caught:
                await sandbox.bash(fill, 30)
    finally:
        await sandboxes.aclose()
    assert caught.value.reason == "SandboxLimitExceeded"
    assert caught.value.policy_error
    assert not caught.value.retryable
