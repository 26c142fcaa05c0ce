"""Settings of a stage worker, from its environment alone."""

import os
import socket
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rollout_crds.locations import images_dir, models_dir, parse_server_url
from rollout_crds.result import Stage


class SettingsError(Exception):
    """The environment lacks something, or has something unreadable; names the variable."""


@dataclass(frozen=True)
class Settings:
    """What a stage worker must know before it asks for work."""

    stage: Stage
    gateway_url: str
    worker: str
    """Stable name: that of the pod."""
    job_uid: str | None
    pool: str | None
    """`namespace/name` of a RolloutPool; exactly one of `job_uid` and `pool` is set."""
    concurrency: int
    work_dir: Path
    blob_url: str
    images: Path
    models: Path


def from_environment(stage: str, env: Mapping[str, str] = os.environ) -> Settings:
    """Read the settings of a worker of `stage`.

    Raises:
        SettingsError: A variable is missing or unreadable.
    """
    job_uid, pool = env.get("ROLLOUT_JOB_UID") or None, env.get("ROLLOUT_POOL") or None
    if (job_uid is None) == (pool is None):
        msg = "set exactly one of ROLLOUT_JOB_UID (uid of a job) and ROLLOUT_POOL (namespace/name)"
        raise SettingsError(msg)
    work_dir = env.get("ROLLOUT_WORK_DIR") or str(Path(tempfile.gettempdir()) / "rollout-work")
    return Settings(
        stage=_stage(stage),
        gateway_url=_gateway_url(env),
        worker=env.get("ROLLOUT_POD_NAME") or f"{stage}-{socket.gethostname()}-{os.getpid()}",
        job_uid=job_uid,
        pool=pool,
        concurrency=_positive(env, "ROLLOUT_CONCURRENCY", default=4),
        work_dir=Path(work_dir).absolute(),
        blob_url=_required(env, "ROLLOUT_BLOB_URL", "such as file:///var/lib/rollout/blobs"),
        images=images_dir(env),
        models=models_dir(env),
    )


def _stage(name: str) -> Stage:
    try:
        return Stage(name)
    except ValueError:
        msg = f"unknown stage {name!r}: must be one of {', '.join(Stage)}"
        raise SettingsError(msg) from None


def _gateway_url(env: Mapping[str, str]) -> str:
    url = _required(env, "ROLLOUT_GATEWAY_URL", "such as unix:///run/rollout/gateway.sock")
    try:
        parse_server_url(url)
    except ValueError as error:
        msg = f"ROLLOUT_GATEWAY_URL: {error}"
        raise SettingsError(msg) from None
    return url


def _required(env: Mapping[str, str], name: str, example: str) -> str:
    value = env.get(name)
    if not value:
        msg = f"{name} is not set; set it to a URL {example}"
        raise SettingsError(msg)
    return value


def _positive(env: Mapping[str, str], name: str, *, default: int) -> int:
    text = env.get(name) or str(default)
    if not text.isdecimal() or int(text) == 0:
        msg = f"{name} is {text!r}: must be a whole number greater than 0"
        raise SettingsError(msg)
    return int(text)
