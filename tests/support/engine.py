"""Fixtures of real parts: the vLLM server of the test session, and what set-up put in the cache."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hack.engine import Address, free_port, serve
from hack.setup.store import default_root


@dataclass(frozen=True)
class Engine:
    """A vLLM server that answers: its base URL, the model's served name and folder."""

    url: str
    model: str
    folder: Path


def cached(kind: str, name: str) -> Path:
    """Return `$ROLLOUT_CACHE/kind/name`; skips the test, telling the remedy, if it is not there."""
    path = default_root() / kind / name
    if not path.exists():
        pytest.skip(f"no {path}: run `make setup`")
    return path


@contextmanager
def engine(model: str = "tiny-qwen3", *extra: str, max_model_len: int = 4096) -> Iterator[Engine]:
    """Serve one of the cache's models for the body, on a free port of the loopback interface."""
    cached("bin", "vllm-python")
    folder, address = cached("models", model), Address(free_port())
    with (
        TemporaryDirectory() as logs,
        serve(folder, address, Path(logs) / "vllm.log", max_model_len=max_model_len, extra=extra),
    ):
        yield Engine(address.url(), "m", folder)


@pytest.fixture(scope="session")
def tiny_engine() -> Iterator[Engine]:
    """The session's server of tiny-qwen3; import it into a conftest to use it."""
    with engine() as running:
        yield running
