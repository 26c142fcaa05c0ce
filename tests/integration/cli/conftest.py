"""rolloutctl in this process against a real gateway process."""

import contextlib
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from rollout_client.cli.app import run
from tests.integration.client.gateway_process import GatewayProcess


@dataclass(frozen=True)
class Result:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


Command = Callable[..., Result]


@pytest.fixture
def gateway() -> Iterator[GatewayProcess]:
    with tempfile.TemporaryDirectory(prefix="ctl-") as state:
        process = GatewayProcess(Path(state))
        process.start()
        yield process
        process.kill()


@pytest.fixture
def ctl(gateway: GatewayProcess, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run rolloutctl against the gateway."""

    def call(*words: str) -> Result:
        capsys.readouterr()
        code = 0
        with contextlib.suppress(SystemExit):
            code = run([*words, "--state-dir", str(gateway.state)])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call
