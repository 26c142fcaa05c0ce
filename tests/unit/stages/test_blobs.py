"""Blobs are named by their content and are there whole or not at all."""

import hashlib
from pathlib import Path

import pytest

from rollout_crds.wire import BlobRef
from rollout_stages.blobs import FsspecBlobStore
from rollout_stages.errors import StageError


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_content_comes_back_and_is_stored_once(tmp_path: Path) -> None:
    blobs = FsspecBlobStore(f"file://{tmp_path}/b")
    ref = await blobs.put(b"content")
    assert await blobs.put(b"content") == ref
    assert ref == BlobRef(sha256=hashlib.sha256(b"content").hexdigest(), size=7)
    assert await blobs.read(ref) == b"content"
    assert names(tmp_path / "b") == [ref.sha256]


async def test_missing_and_damaged_blobs_are_unavailable(tmp_path: Path) -> None:
    blobs = FsspecBlobStore(f"file://{tmp_path}")
    ref = await blobs.put(b"content")
    (tmp_path / ref.sha256).write_bytes(b"changed")
    with pytest.raises(StageError, match="does not fit its name"):
        await blobs.read(ref)
    (tmp_path / ref.sha256).unlink()
    with pytest.raises(StageError) as caught:
        await blobs.read(ref)
    assert (caught.value.reason, caught.value.retryable) == ("BlobUnavailable", True)


async def test_file_travels_through_a_store_that_is_not_a_directory(tmp_path: Path) -> None:
    blobs = FsspecBlobStore("memory://layers")
    assert blobs.local_directory() is None
    source = tmp_path / hashlib.sha256(b"layer").hexdigest()
    source.write_bytes(b"layer")
    ref = await blobs.put_file(source)
    await blobs.fetch(ref, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"layer"
    assert names(tmp_path) == sorted([source.name, "copy"])
