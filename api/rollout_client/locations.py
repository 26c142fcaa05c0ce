"""Where things of one machine are: the state directory, the cache, the gateway's URL.

Pure functions of the environment, free of heavy imports, because every command asks them first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


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


def socket_url(state: Path) -> str:
    """URL of the gateway that the local node of this state directory runs."""
    return f"unix://{state / 'run' / 'gateway.sock'}"


def default_url(env: Mapping[str, str]) -> str:
    """The gateway to use when none is named: `$ROLLOUT_SERVER`, else this machine's own."""
    return env.get("ROLLOUT_SERVER") or socket_url(state_dir(env))


def _xdg(env: Mapping[str, str], variable: str, below_home: str) -> Path:
    explicit = env.get(variable)
    return Path(explicit) if explicit else Path(env.get("HOME") or Path.home()) / below_home


@dataclass(frozen=True)
class GatewayAddress:
    """A gateway URL taken apart."""

    url: str
    """As given: `unix:///path.sock` or `http(s)://host:port`."""
    base_url: str
    """What HTTP libraries take; of a Unix socket a made-up host."""
    socket_path: str | None = None


def parse_gateway_url(url: str) -> GatewayAddress:
    """Take a gateway URL apart.

    Raises:
        ValueError: It is neither `unix:///abs/path` nor `http(s)://host[:port]`.
    """
    parts = urlsplit(url)
    if parts.scheme == "unix" and not parts.netloc and len(parts.path) > 1:
        return GatewayAddress(url, "http://gateway", parts.path)
    if parts.scheme in {"http", "https"} and parts.netloc:
        return GatewayAddress(url, url.rstrip("/"))
    msg = f"gateway URL {url!r} is neither `unix:///path/to.sock` nor `http://host:port`"
    raise ValueError(msg)
