"""What this machine has and lacks, with the remedy for each missing piece.

Only what can be told in a moment: files and programs are looked for, nothing is started.
"""

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import typer

from rollout_client.cli.node import LocalNode
from rollout_client.cli.options import settings_of
from rollout_crds.locations import (
    MAX_SOCKET_PATH,
    StateDirectory,
    cache_dir,
    images_dir,
    models_dir,
)

_SETUP = "in a checkout run `python3 -m hack.setup {}`"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for."""

    name: str
    found: str
    """What is there; empty when it is missing."""
    remedy: str = ""
    required: bool = True


def doctor_command(ctx: typer.Context) -> None:
    """Check what this machine has, and say how to get what is missing; exit code 1 if needed."""
    findings = list(examine(settings_of(ctx).state_dir, os.environ, shutil.which))
    for finding in findings:
        print(finding_line(finding))
    if any(finding.required and not finding.found for finding in findings):
        raise typer.Exit(1)


def finding_line(finding: Finding) -> str:
    """`ok`, `missing` or `none` with the name, and what is there or how to get it."""
    if finding.found:
        return f"ok       {finding.name}: {finding.found}"
    mark = "missing" if finding.required else "none   "
    return f"{mark}  {finding.name}: {finding.remedy}"


def examine(
    state: Path, env: Mapping[str, str], which: Callable[[str], str | None]
) -> Iterator[Finding]:
    """Look for everything that a run on one machine uses."""
    programs = cache_dir(env) / "bin"
    yield Finding("python", platform.python_version())
    yield _program("rollout-node", which, "pip install 'rollout-operator[local]'")
    yield _sandbox(programs, which)
    yield _entries("images", images_dir(env), _SETUP.format("image-busybox image-python"))
    yield _entries("models", models_dir(env), _SETUP.format("smollm2"))
    yield _vllm(programs)
    yield _state(state)
    pid = LocalNode(state).running_pid()
    yield Finding("node", f"process {pid}" if pid else "", "`rolloutctl up` starts it", False)


def _program(name: str, which: Callable[[str], str | None], remedy: str) -> Finding:
    beside = Path(sys.executable).with_name(name)
    return Finding(name, str(beside) if beside.exists() else which(name) or "", remedy)


def _sandbox(programs: Path, which: Callable[[str], str | None]) -> Finding:
    own = programs / "apptainer"
    found = str(own) if own.exists() else which("apptainer") or which("bwrap") or ""
    remedy = f"install apptainer or bubblewrap, or {_SETUP.format('apptainer')}"
    return Finding("apptainer or bwrap", found, remedy)


def _entries(name: str, folder: Path, remedy: str) -> Finding:
    names = sorted(path.name for path in folder.glob("*"))
    found = f"{folder}: {', '.join(names)}" if names else ""
    return Finding(name, found, f"{folder} is empty; {remedy}, or name them by path", False)


def _vllm(programs: Path) -> Finding:
    python = programs / "vllm-python"
    remedy = f"{_SETUP.format('vllm')}; only LLMPools with `launch` need it"
    return Finding("vllm-python", str(python) if python.exists() else "", remedy, False)


def _state(state: Path) -> Finding:
    length = len(os.fsencode(StateDirectory(state).gateway_socket))
    if length > MAX_SOCKET_PATH:
        remedy = f"{state} is too long for a socket below it; choose a shorter --state-dir"
        return Finding("state directory", "", remedy)
    existing = next(path for path in (state, *state.parents) if path.exists())
    writable = os.access(existing, os.W_OK)
    remedy = f"{existing} cannot be written; choose another --state-dir"
    return Finding("state directory", str(state) if writable else "", remedy)
