"""Images of every form can be entered, and layers move between backends."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

import pytest

from rollout_sandbox.errors import ImageNotFound
from rollout_sandbox.manager import SandboxManager
from rollout_sandbox.ports import SandboxSpec

pytestmark = [pytest.mark.sandbox, pytest.mark.timeout(60)]


def docker_archive(rootfs: Path, target: Path) -> None:
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(rootfs.resolve(), arcname=".")
    data = layer.getvalue()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/bin:/usr/bin", "FROM_IMAGE=yes"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(data).hexdigest()}"]},
    }
    manifest = [{"Config": "c.json", "RepoTags": ["test:1"], "Layers": ["layer.tar"]}]
    files = {"c.json": json.dumps(config), "manifest.json": json.dumps(manifest)}
    with tarfile.open(target, "w") as tar:
        for name, content in {**files, "layer.tar": data}.items():
            raw = content.encode() if isinstance(content, str) else content
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))


def oci_layout(rootfs: Path, target: Path) -> None:
    """Write an OCI image layout with one layer."""
    blobs = target / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(data: bytes, kind: str) -> dict[str, object]:
        digest = hashlib.sha256(data).hexdigest()
        (blobs / digest).write_bytes(data)
        media = f"application/vnd.oci.image.{kind}"
        return {"mediaType": media, "digest": f"sha256:{digest}", "size": len(data)}

    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(rootfs.resolve(), arcname=".")
    packed = blob(layer.getvalue(), "layer.v1.tar")
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Env": ["PATH=/bin:/usr/bin", "FROM_IMAGE=yes"]},
        "rootfs": {"type": "layers", "diff_ids": [packed["digest"]]},
    }
    described = blob(json.dumps(config).encode(), "config.v1+json")
    manifest = {"schemaVersion": 2, "config": described, "layers": [packed]}
    listed = blob(json.dumps(manifest).encode(), "manifest.v1+json")
    (target / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [listed]}))
    (target / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


@pytest.mark.parametrize("scheme", ["oci", "oci-archive"])
async def test_an_oci_image_is_entered(scheme, root, tmp_path, need_backend, need_image):
    need_backend("apptainer")
    source = tmp_path / "layout"
    oci_layout(need_image("busybox"), source)
    if scheme == "oci-archive":
        source = tmp_path / "image.tar"
        with tarfile.open(source, "w") as tar:
            for part in (tmp_path / "layout").iterdir():
                tar.add(part, arcname=part.name)
    async with (
        SandboxManager(root, owner="oci", backend="apptainer") as manager,
        manager.start(SandboxSpec(image=f"{scheme}:{source}")) as sandbox,
    ):
        assert (await sandbox.bash("echo $FROM_IMAGE")).output == "yes\n"


@pytest.mark.parametrize("backend", ["apptainer", "bubblewrap"])
async def test_a_docker_archive_is_converted_once(
    backend, root, tmp_path, need_backend, need_image
):
    need_backend("apptainer")
    need_backend(backend)
    docker_archive(need_image("busybox"), tmp_path / "image.tar")
    spec = SandboxSpec(image=f"docker-archive:{tmp_path}/image.tar")
    async with SandboxManager(root, owner="images", backend=backend) as manager:
        async with manager.start(spec) as sandbox:
            assert (await sandbox.bash("echo works")).output == "works\n"
        before = {path: path.stat().st_mtime_ns for path in (root / "images").iterdir()}
        async with manager.start(spec) as sandbox:
            if backend == "apptainer":
                assert (await sandbox.bash("echo $FROM_IMAGE")).output == "yes\n"
        after = {path: path.stat().st_mtime_ns for path in (root / "images").iterdir()}
        assert {p: t for p, t in after.items() if p.suffix == ".sif"} == {
            p: t for p, t in before.items() if p.suffix == ".sif"
        }
        assert after.keys() == before.keys()


async def test_bubblewrap_enters_a_sif_by_unpacking_it(root, need_backend, need_image):
    need_backend("bubblewrap")
    spec = SandboxSpec(image=str(need_image("busybox.sif")))
    async with (
        SandboxManager(root, owner="images", backend="bubblewrap") as manager,
        manager.start(spec) as sandbox,
    ):
        assert (await sandbox.bash("ls /bin/busybox")).exit_code == 0


async def test_an_archive_that_is_none_is_named(root, tmp_path, need_backend):
    need_backend("apptainer")
    (tmp_path / "broken.tar").write_bytes(b"broken")
    spec = SandboxSpec(image=f"docker-archive:{tmp_path}/broken.tar")
    async with SandboxManager(root, owner="images", backend="apptainer") as manager:
        with pytest.raises(ImageNotFound, match=r"broken\.tar.*failed"):
            await manager.open(spec)
        assert list((root / "owners" / "images").iterdir()) == []


@pytest.mark.parametrize("order", [("apptainer", "bubblewrap"), ("bubblewrap", "apptainer")])
async def test_layers_move_between_backends(order, root, need_backend, need_image):
    for backend in order:
        need_backend(backend)
    image = str(need_image("python"))
    first, second = order
    async with (
        SandboxManager(root, owner="first", backend=first) as manager,
        manager.start(SandboxSpec(image=image)) as sandbox,
    ):
        await sandbox.bash("rm -rf /usr/share /home; mkdir /usr/share; echo n >/usr/share/new")
        layer = await sandbox.commit()
    spec = SandboxSpec(image=image, layers=(layer,))
    async with (
        SandboxManager(root, owner="second", backend=second) as manager,
        manager.start(spec) as sandbox,
    ):
        seen = await sandbox.bash("ls /usr/share; cat /usr/share/new; ls -d /home")
        assert seen.output.startswith("new\nn\n")
        assert seen.exit_code != 0
        removed = await sandbox.bash("rm -rf /usr/share && ls -d /usr/share")
        assert "rm:" not in removed.output
