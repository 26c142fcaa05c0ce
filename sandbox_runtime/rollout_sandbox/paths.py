"""Where this package keeps what it builds once per machine."""

import os
from pathlib import Path


def cache_root() -> Path:
    """Return `$ROLLOUT_CACHE`, by default `~/.cache/rollout-operator`."""
    configured = os.environ.get("ROLLOUT_CACHE")
    return Path(configured) if configured else Path.home() / ".cache" / "rollout-operator"
