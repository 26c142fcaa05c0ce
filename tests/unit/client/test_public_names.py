"""What the package exports, and what importing it costs."""

import inspect
import subprocess
import sys

import pytest

import rollout_client
from rollout_client import AsyncRolloutClient, RolloutClient


def test_every_public_name_can_be_loaded() -> None:
    for name in rollout_client.__all__:
        assert getattr(rollout_client, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = rollout_client.Nothing


@pytest.mark.parametrize(
    "module", ["rollout_client", "rollout_client.cli", "rollout_client.cli.get"]
)
def test_short_commands_import_neither_models_nor_http_library(module: str) -> None:
    script = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    assert not {b"pydantic", b"httpx2", b"rich", b"yaml"} & set(loaded.split())


def test_the_blocking_client_has_every_method_of_the_asynchronous_one() -> None:
    public = {
        name
        for name, _ in inspect.getmembers(AsyncRolloutClient, inspect.isfunction)
        if not name.startswith("_")
    }
    blocking = {name for name in dir(RolloutClient) if not name.startswith("_")}
    assert blocking == public - {"aclose"} | {"close"}
