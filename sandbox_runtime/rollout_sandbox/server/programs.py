"""How the tools start programs: environment, rlimits and the shell to use."""

import os

from .types import ServerConfig

_OWN_BASH = "/.rollout/runtime/bin/bash"
_DEFAULTS = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
}
_NOT_PASSED_ON = ("APPTAINER", "SINGULARITY", "LD_LIBRARY_PATH", "PROMPT_COMMAND", "PS1")


def tool_environment(own: dict[str, str], configured: dict[str, str]) -> dict[str, str]:
    """Return the tools' environment: defaults, then the image's own, then the spec's.

    >>> tool_environment({"A": "image", "APPTAINER_NAME": "x"}, {"B": "1"})["A"]
    'image'
    """
    inherited = {k: v for k, v in own.items() if not k.startswith(_NOT_PASSED_ON)}
    return {**_DEFAULTS, **inherited, **configured}


def find_bash(env: dict[str, str]) -> str:
    """Return the image's bash, or the runtime's own where the image has none."""
    candidates = (f"{place}/bash" for place in env.get("PATH", "").split(":") if place)
    return next((path for path in candidates if os.access(path, os.X_OK)), _OWN_BASH)


def limited(config: ServerConfig, argv: list[str]) -> list[str]:
    """Return `argv` behind a shell that sets the rlimits and then becomes the program.

    The kernel, out of memory, is told to take the program and not the server.

    >>> config = ServerConfig(socket_fd=3, lifeline_fd=4, workdir="/", run_dir="/", env={},
    ...     action_seconds=1, output_bytes=1, transfer_bytes=1, processes=9)
    >>> limited(config, ["ls"])[2:]
    ['echo 500 >/proc/self/oom_score_adj; ulimit -c 0 && ulimit -u 9 && exec "$0" "$@"', 'ls']
    """
    settings = ["echo 500 >/proc/self/oom_score_adj; ulimit -c 0"]
    if config.memory_bytes is not None:
        settings.append(f"ulimit -v {config.memory_bytes // 1024}")
    if config.processes is not None:
        settings.append(f"ulimit -u {config.processes}")
    if config.open_files is not None:
        settings.append(f"ulimit -n {config.open_files}")
    if config.disk_bytes is not None:
        settings.append(f"ulimit -f {config.disk_bytes // 1024}")
    script = " && ".join([*settings, 'exec "$0" "$@"'])
    return [_OWN_BASH, "-c", script, *argv]


def time_limit(config: ServerConfig, wanted_seconds: float | None) -> float:
    """Return the seconds an action may take: what is asked for, up to the sandbox's limit."""
    return min(wanted_seconds or config.action_seconds, config.action_seconds)


def working_directory(config: ServerConfig) -> str:
    """Make the working directory if it is missing, and return it (`/` where it can't be made)."""
    try:
        os.makedirs(config.workdir, exist_ok=True)  # noqa: PTH103 - pathlib is not loaded here
    except OSError:
        return "/"
    return config.workdir if os.access(config.workdir, os.X_OK) else "/"
