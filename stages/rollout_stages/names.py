"""Where this node keeps what manifests call by plain names."""

from pathlib import Path

from rollout_crds.locations import image_paths


def image_reference(image: str, directory: Path) -> str:
    """The image of a manifest as the sandbox runtime takes it.

    Paths and archives are taken as they are; a plain name is a SIF or a root file system directory
    in `directory`.

    Raises:
        FileNotFoundError: There is none of that name; the message has the remedy.
    """
    paths = image_paths(image, directory)
    if len(paths) == 1:
        return image
    for path in paths:
        if path.exists():
            return str(path)
    msg = (
        f"no image {image!r}: neither {paths[0]} nor {paths[1]} exists; put it there or "
        "give an absolute path in `sandbox.image`"
    )
    raise FileNotFoundError(msg)


def model_directory(model: str, directory: Path) -> Path:
    """Directory of a model that a manifest names by absolute path or plain name."""
    return directory / model
