"""OCI image archives made from a root file system, without a container engine or a registry.

The same files give the same bytes, so that an archive's digest tells whether an image changed.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_OCI = "application/vnd.oci.image"
_CHUNK = 1 << 20
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True)
class Config:
    """How a container of the image starts."""

    entrypoint: Sequence[str] = ()
    command: Sequence[str] = ()
    env: Sequence[str] = ()
    """`NAME=value` each; PATH has the usual value if it is not among them."""
    user: str = ""
    workdir: str = ""

    def document(self) -> dict[str, Any]:
        """Return it in the words of the OCI image specification, without what is not set."""
        has_path = any(entry.startswith("PATH=") for entry in self.env)
        fields = {
            "Entrypoint": list(self.entrypoint),
            "Cmd": list(self.command),
            "Env": list(self.env) if has_path else [_PATH, *self.env],
            "User": self.user,
            "WorkingDir": self.workdir,
        }
        return {name: value for name, value in fields.items() if value}


DEFAULT = Config()


def write_archive(root: Path, name: str, archive: Path, config: Config = DEFAULT) -> None:
    """Write an image as one tar file, as `ctr images import` and `podman load` read it.

    Args:
        root: Folder that becomes the container's `/`; its files belong to root there.
        name: Full name with a tag, such as `docker.io/local/tool:1`.
        archive: File to write.
        config: How a container of it starts.

    Raises:
        ValueError: The name has no tag.
        OSError: A file cannot be read or written.
    """
    repository, _, tag = name.rpartition(":")
    if not repository or "/" in tag:
        raise ValueError(f"{name!r} has no tag: write for example {name}:1")
    layer = archive.with_name(f".{archive.name}.layer")
    try:
        _write_layer(root, layer)
        with tarfile.open(archive, "w") as out:
            _assemble(out, layer, name, tag, config)
    finally:
        layer.unlink(missing_ok=True)


def _write_layer(root: Path, layer: Path) -> None:
    with tarfile.open(layer, "w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(root.iterdir()):
            tar.add(path, path.name, filter=_anonymous)


def _anonymous(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _assemble(out: tarfile.TarFile, layer: Path, name: str, tag: str, config: Config) -> None:
    machine = platform.machine()
    system = {"os": "linux", "architecture": ARCHITECTURES.get(machine, machine)}
    _add(out, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
    layer_digest = _add_layer(out, layer)
    image = {
        **system,
        "config": config.document(),
        "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": _add_blob(out, image, f"{_OCI}.config.v1+json"),
        "layers": [
            {
                "mediaType": f"{_OCI}.layer.v1.tar",
                "digest": layer_digest,
                "size": layer.stat().st_size,
            }
        ],
    }
    entry = _add_blob(out, manifest, f"{_OCI}.manifest.v1+json")
    names = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": tag}
    index = {"schemaVersion": 2, "manifests": [{**entry, "platform": system, "annotations": names}]}
    _add(out, "index.json", json.dumps(index).encode())


def _add_layer(out: tarfile.TarFile, layer: Path) -> str:
    whole = hashlib.sha256()
    with layer.open("rb") as file:
        while chunk := file.read(_CHUNK):
            whole.update(chunk)
        entry = tarfile.TarInfo(f"blobs/sha256/{whole.hexdigest()}")
        entry.size = file.tell()
        file.seek(0)
        out.addfile(entry, file)
    return f"sha256:{whole.hexdigest()}"


def _add_blob(out: tarfile.TarFile, document: dict[str, Any], media_type: str) -> dict[str, Any]:
    data = json.dumps(document).encode()
    digest = hashlib.sha256(data).hexdigest()
    _add(out, f"blobs/sha256/{digest}", data)
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(data)}


def _add(out: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    out.addfile(entry, io.BytesIO(data))
