"""An image archive has what the OCI image layout asks for, and is the same for the same files."""

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from hack.kube.images import Config, write_archive


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "tool").write_text("#!/bin/sh\n")
    (root / "bin" / "tool").chmod(0o755)
    (root / "bin" / "alias").symlink_to("tool")
    return root


def read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        members = {member.name: tar.extractfile(member) for member in tar.getmembers()}
    with tarfile.open(archive) as tar:
        return {name: tar.extractfile(name).read() for name in members}  # type: ignore[union-attr]


def blob(files: dict[str, bytes], descriptor: dict[str, Any]) -> bytes:
    algorithm, digest = descriptor["digest"].split(":")
    data = files[f"blobs/{algorithm}/{digest}"]
    assert (len(data), hashlib.sha256(data).hexdigest()) == (descriptor["size"], digest)
    return data


def test_every_part_is_found_from_the_index_by_its_digest(root: Path, tmp_path: Path) -> None:
    archive = tmp_path / "image.tar"
    config = Config(entrypoint=["/bin/tool"], command=["-v"], env=["A=b"], user="1000")
    write_archive(root, "docker.io/local/tool:2", archive, config)
    files = read(archive)
    assert json.loads(files["oci-layout"]) == {"imageLayoutVersion": "1.0.0"}
    (entry,) = json.loads(files["index.json"])["manifests"]
    assert entry["annotations"] == {
        "io.containerd.image.name": "docker.io/local/tool:2",
        "org.opencontainers.image.ref.name": "2",
    }
    manifest = json.loads(blob(files, entry))
    image = json.loads(blob(files, manifest["config"]))
    (layer,) = manifest["layers"]
    assert image["rootfs"] == {"type": "layers", "diff_ids": [layer["digest"]]}
    assert image["config"]["Entrypoint"] == ["/bin/tool"]
    assert (image["config"]["Cmd"], image["config"]["User"]) == (["-v"], "1000")
    assert [name.split("=")[0] for name in image["config"]["Env"]] == ["PATH", "A"]
    with tarfile.open(fileobj=io.BytesIO(blob(files, layer))) as tar:
        members = {member.name: member for member in tar.getmembers()}
    assert set(members) == {"bin", "bin/tool", "bin/alias"}
    assert {(m.uid, m.gid, m.mtime) for m in members.values()} == {(0, 0, 0)}
    assert members["bin/tool"].mode == 0o755
    assert members["bin/alias"].linkname == "tool"


def test_the_same_files_give_the_same_bytes(root: Path, tmp_path: Path) -> None:
    for name in ("one.tar", "two.tar"):
        write_archive(root, "local/tool:1", tmp_path / name)
        (root / "bin" / "tool").touch()
    assert (tmp_path / "one.tar").read_bytes() == (tmp_path / "two.tar").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.tar", "root", "two.tar"]


def test_a_path_of_its_own_replaces_the_usual_one() -> None:
    assert Config(env=["PATH=/x"]).document() == {"Env": ["PATH=/x"]}


@pytest.mark.parametrize("name", ["tool", "registry:5000/tool", ":1"])
def test_a_name_without_a_tag_is_refused(root: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="has no tag"):
        write_archive(root, name, tmp_path / "image.tar")
    assert not (tmp_path / "image.tar").exists()
