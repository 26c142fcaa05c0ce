"""The stages with real sandboxes and the real engine."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_crds.rolloutjob import RolloutSpec
from rollout_stages.blobs import FsspecBlobStore
from rollout_stages.sandboxes import NodeSandboxes
from tests.support.engine import Engine, cached, tiny_engine
from tests.support.recording_proxy import RecordingProxy

__all__ = ["tiny_engine"]


@pytest.fixture
def image() -> str:
    """An image with Python."""
    return str(cached("images", "python"))


@pytest.fixture
def spec(image: str) -> RolloutSpec:
    """A job for the coding handler."""
    return RolloutSpec.model_validate(
        {
            "handler": "code",
            "agent": {"tools": ["bash", "ipython"]},
            "llm": {
                "poolRef": {"name": "pool"},
                "sampling": {"maxTokens": 64, "seed": 7},
                "maxContextTokens": 4096,
            },
            "sandbox": {"image": image, "resources": {"actionTimeoutSeconds": 30}},
        }
    )


@pytest.fixture
def blobs(tmp_path: Path) -> FsspecBlobStore:
    return FsspecBlobStore(f"file://{tmp_path}/blobs")


@pytest.fixture
async def sandboxes(tmp_path: Path, blobs: FsspecBlobStore) -> AsyncIterator[NodeSandboxes]:
    node = NodeSandboxes(tmp_path / "sandboxes", "test", blobs, tmp_path / "images")
    try:
        yield node
    finally:
        await node.aclose()


@pytest.fixture
async def recorded_engine(tiny_engine: Engine, tmp_path: Path) -> AsyncIterator[RecordingProxy]:
    """The real engine behind a proxy that keeps each exchange as it went over the wire."""
    async with RecordingProxy(tiny_engine.url, tmp_path / "engine.sock") as proxy:
        yield proxy
