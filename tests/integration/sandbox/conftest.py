"""Where images are, and which backends work on this machine."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rollout_sandbox.errors import SandboxUnavailable
from rollout_sandbox.paths import cache_root
from rollout_sandbox.probe import Capability, choose, probe


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sandboxes")


@pytest.fixture(scope="session")
def capabilities(root: Path) -> list[Capability]:
    return probe(root)


@pytest.fixture
def need_backend(capabilities: list[Capability]) -> Callable[[str], None]:
    def need(name: str) -> None:
        try:
            choose(capabilities, name)
        except SandboxUnavailable as error:
            pytest.skip(str(error))

    return need


@pytest.fixture
def need_image() -> Callable[[str], Path]:
    def need(name: str) -> Path:
        path = cache_root() / "images" / name
        if not path.exists():
            pytest.skip(f"{path} is missing: run `python -m hack.setup images`")
        return path

    return need
