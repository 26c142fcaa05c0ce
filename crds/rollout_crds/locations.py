"""Where things of one machine are: state, cache, images, sockets, and what a server's URL means.

Pure functions of the environment, free of heavy imports, because every command asks them first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

MAX_SOCKET_PATH = 107
"""Bytes that the path of a Unix socket may have on Linux."""

IMAGE_ARCHIVES = ("docker-archive", "oci-archive", "oci")
"""What an image may start with, with a `:` and a path behind it."""


@dataclass(frozen=True)
class StateDirectory:
    """Places in the state directory of one node."""

    root: Path

    @property
    def run(self) -> Path:
        """Sockets and the ready file."""
        return self.root / "run"

    @property
    def logs(self) -> Path:
        """A log of each pod, and that of the node."""
        return self.root / "logs"

    @property
    def work(self) -> Path:
        """Scratch space of the stage workers."""
        return self.root / "work"

    @property
    def blobs(self) -> Path:
        """Files that stages hand to one another."""
        return self.root / "blobs"

    @property
    def database(self) -> Path:
        """All that is durable, but the blobs."""
        return self.root / "gateway.db"

    @property
    def gateway_socket(self) -> Path:
        """Where the gateway listens."""
        return self.run / "gateway.sock"

    @property
    def gateway_url(self) -> str:
        """URL of the gateway."""
        return f"unix://{self.gateway_socket}"

    @property
    def ready_file(self) -> Path:
        """Exists while the node is ready: `{"pid": ..., "gateway_url": ...}`."""
        return self.run / "node.json"

    @property
    def lock_file(self) -> Path:
        """Held by the node, whose process id is in it."""
        return self.root / "node.lock"

    @property
    def node_log(self) -> Path:
        """Log of the node itself."""
        return self.logs / "node.log"


def state_dir(env: Mapping[str, str]) -> Path:
    """The state directory: `$ROLLOUT_STATE_DIR`, else below the XDG state home."""
    if explicit := env.get("ROLLOUT_STATE_DIR"):
        return Path(explicit).absolute()
    return _xdg(env, "XDG_STATE_HOME", ".local/state") / "rollout-operator"


def cache_dir(env: Mapping[str, str]) -> Path:
    """The cache directory: `$ROLLOUT_CACHE`, else below the XDG cache home."""
    if explicit := env.get("ROLLOUT_CACHE"):
        return Path(explicit).absolute()
    return _xdg(env, "XDG_CACHE_HOME", ".cache") / "rollout-operator"


def images_dir(env: Mapping[str, str]) -> Path:
    """Where images are found by plain name."""
    explicit = env.get("ROLLOUT_IMAGES")
    return Path(explicit) if explicit else cache_dir(env) / "images"


def models_dir(env: Mapping[str, str]) -> Path:
    """Where models are found by plain name."""
    explicit = env.get("ROLLOUT_MODELS")
    return Path(explicit) if explicit else cache_dir(env) / "models"


def image_paths(image: str, images: Path) -> tuple[Path, ...]:
    """What the image of a manifest may be on this machine; the first that exists is it.

    Args:
        image: A path, an archive (`oci:PATH` and the like), or a plain name: that of a SIF or of
            a root file system directory in `images`.
        images: Where plain names are looked up.
    """
    scheme, colon, path = image.partition(":")
    if colon and scheme in IMAGE_ARCHIVES:
        return (Path(path),)
    if image.startswith("/"):
        return (Path(image),)
    return (images / f"{image}.sif", images / image)


def default_url(env: Mapping[str, str]) -> str:
    """The gateway to use when none is named: `$ROLLOUT_SERVER`, else this machine's own."""
    return env.get("ROLLOUT_SERVER") or StateDirectory(state_dir(env)).gateway_url


def _xdg(env: Mapping[str, str], variable: str, below_home: str) -> Path:
    explicit = env.get(variable)
    return Path(explicit) if explicit else Path(env.get("HOME") or Path.home()) / below_home


@dataclass(frozen=True)
class ServerAddress:
    """The URL of a gateway or an inference server, taken apart."""

    url: str
    """As given: `unix:///path.sock` or `http(s)://host:port`."""
    base_url: str
    """What HTTP libraries take; of a Unix socket a made-up host."""
    socket_path: str | None = None


def parse_server_url(url: str) -> ServerAddress:
    """Take the URL of a gateway or an inference server apart.

    Raises:
        ValueError: It is neither `unix:///abs/path` nor `http(s)://host[:port]`.
    """
    parts = urlsplit(url)
    if parts.scheme == "unix" and not parts.netloc and len(parts.path) > 1:
        return ServerAddress(url, "http://localhost", parts.path)
    if parts.scheme in {"http", "https"} and parts.netloc:
        return ServerAddress(url, url.rstrip("/"))
    msg = f"URL {url!r} is neither `unix:///path/to.sock` nor `http://host:port`"
    raise ValueError(msg)
