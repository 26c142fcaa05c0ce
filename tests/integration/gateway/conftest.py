import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest


class GatewayProcess:
    """A real gateway on a Unix socket, which can be killed and started again."""

    def __init__(self, state: Path) -> None:
        self.state = state
        self.socket = state / "run" / "gateway.sock"
        self.process: subprocess.Popen[str] | None = None

    def command(self, *options: str) -> list[str]:
        return [sys.executable, "-m", "rollout_api", "--state-dir", str(self.state), *options]

    def start(self, *options: str) -> None:
        self.process = subprocess.Popen(
            self.command(*options), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        deadline = time.monotonic() + 20
        while not self._answers():
            assert self.process.poll() is None, self.process.communicate()[0]
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> tuple[int, str]:
        return self._end(signal.SIGTERM)

    def client(self) -> httpx2.AsyncClient:
        transport = httpx2.AsyncHTTPTransport(uds=str(self.socket))
        return httpx2.AsyncClient(transport=transport, base_url="http://gateway", timeout=60)

    def _end(self, number: int) -> tuple[int, str]:
        assert self.process is not None
        self.process.send_signal(number)
        output = self.process.communicate(timeout=20)[0]
        code = self.process.returncode
        self.process = None
        return code, output

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        transport = httpx2.HTTPTransport(uds=str(self.socket))
        with httpx2.Client(transport=transport, base_url="http://gateway") as http:
            return http.get("/readyz").status_code == 200


@pytest.fixture
def gateway() -> Iterator[GatewayProcess]:
    with tempfile.TemporaryDirectory(prefix="gw-", dir=os.environ.get("TMPDIR", "/tmp")) as state:
        process = GatewayProcess(Path(state))
        yield process
        if process.process is not None:
            process.kill()
