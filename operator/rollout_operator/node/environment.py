"""What a pod's program finds in its environment, and references to it in arguments."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rollout_crds.locations import cache_dir, images_dir, models_dir
from rollout_crds.pod import Container, PodEnvVar
from rollout_operator.node.paths import NodePaths

_REFERENCE = re.compile(r"\$(\$|\(([A-Za-z_][A-Za-z0-9_]*)\))")


def node_environment(
    inherited: Mapping[str, str], paths: NodePaths, gateway_url: str
) -> dict[str, str]:
    """The environment of every program of the node."""
    cache = cache_dir(inherited)
    search = [str(cache / "bin"), str(Path(sys.executable).parent), inherited.get("PATH", "")]
    return {
        **inherited,
        "PATH": ":".join(part for part in search if part),
        "PYTHONUNBUFFERED": "1",
        "ROLLOUT_STATE_DIR": str(paths.root),
        "ROLLOUT_GATEWAY_URL": gateway_url,
        "ROLLOUT_WORK_DIR": str(paths.work),
        "ROLLOUT_BLOB_URL": f"file://{paths.blobs}",
        "ROLLOUT_CACHE": str(cache),
        "ROLLOUT_MODELS": str(models_dir(inherited)),
        "ROLLOUT_IMAGES": str(images_dir(inherited)),
    }


@dataclass(frozen=True)
class Invocation:
    """A container's command with its environment, all references replaced."""

    argv: tuple[str, ...]
    env: dict[str, str]


def invocation(container: Container, pod_name: str, node_env: Mapping[str, str]) -> Invocation:
    """How to run a container of a pod."""
    env = {**node_env, "ROLLOUT_POD_NAME": pod_name}
    _extend(env, container.env)
    argv = (*container.command, *container.args)
    return Invocation(tuple(expand(word, env) for word in argv), env)


def _extend(env: dict[str, str], variables: Sequence[PodEnvVar]) -> None:
    """Variables may refer to those before them."""
    for variable in variables:
        env[variable.name] = expand(variable.value, env)


def expand(text: str, env: Mapping[str, str]) -> str:
    """Replace `$(NAME)` as Kubernetes does: an unknown name stays, `$$` is a dollar sign."""

    def replacement(match: re.Match[str]) -> str:
        if match[1] == "$":
            return "$"
        return env.get(match[2], match[0])

    return _REFERENCE.sub(replacement, text)
