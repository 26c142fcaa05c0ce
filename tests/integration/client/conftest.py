"""One gateway process per test."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.client.gateway_process import GatewayProcess


@pytest.fixture
def gateway() -> Iterator[GatewayProcess]:
    with tempfile.TemporaryDirectory(prefix="ctl-") as state:
        process = GatewayProcess(Path(state))
        process.start()
        yield process
        process.kill()
