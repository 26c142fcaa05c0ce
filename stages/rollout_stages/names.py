"""Where this node keeps what manifests call by plain names."""

from pathlib import Path

_ARCHIVES = ("docker-archive:", "oci-archive:", "oci:")


def image_reference(image: str, directory: Path) -> str:
    """The image of a manifest as the sandbox runtime takes it.

    Paths and archives are taken as they are; a plain name is a SIF or a root file system directory
    in `directory`.

    Raises:
        FileNotFoundError: There is none of that name; the message has the remedy.
    """
    if image.startswith(("/", *_ARCHIVES)):
        return image
    candidates = (directory / f"{image}.sif", directory / image)
    for candidate in candidates:
        if candidate.exists():
            return str(candidate)
    msg = (
        f"no image {image!r}: neither {candidates[0]} nor {candidates[1]} exists; put it there or "
        "give an absolute path in `sandbox.image`"
    )
    raise FileNotFoundError(msg)


def model_directory(model: str, directory: Path) -> Path:
    """Directory of a model that a manifest names by absolute path or plain name."""
    return directory / model
