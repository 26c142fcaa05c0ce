"""Starts a real vLLM server on the CPU, waits until it answers, and stops it without leftovers.

    python -m hack.engine tiny-qwen3 --port 8101

The flags make it start fast and answer the same whatever runs beside it: one engine process,
one thread, float32, no chunked prefill (a seeded prompt that is split stops this build's engine).
"""

from __future__ import annotations

import argparse
import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hack.setup.store import default_root

STOP_S = 15.0
KV_CACHE_BYTES = 256 << 20  # room for 4,096 tokens of a model of 135 million parameters
_ENV = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_SERVER_DEV_MODE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "HF_HUB_OFFLINE": "1",
    "OMP_NUM_THREADS": "1",
}


class EngineFailed(RuntimeError):
    """vLLM ended or did not answer in time; the message has the end of its log."""


@dataclass(frozen=True)
class Address:
    """Where a server listens: a Unix socket if `uds` is set, else `host:port`."""

    port: int = 0
    uds: Path | None = None
    host: str = "127.0.0.1"

    def flags(self) -> list[str]:
        """Return vLLM's flags for it."""
        if self.uds:
            return ["--uds", str(self.uds)]
        return ["--host", self.host, "--port", str(self.port)]

    def url(self) -> str:
        """Return the base URL; over a Unix socket the host name means nothing."""
        return "http://engine" if self.uds else f"http://{self.host}:{self.port}"

    def healthy(self) -> bool:
        """Tell whether `GET /health` answers 200."""
        connection = _UnixConnection(self.uds) if self.uds else self._connection()
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=5)


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("engine", timeout=5)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


def free_port() -> int:
    """Return a TCP port of the loopback interface that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def command(
    model: Path, address: Address, name: str, max_model_len: int, extra: Sequence[str]
) -> list[str]:
    """Return the command line of a server for the model folder `model`."""
    return [
        *(str(default_root() / "bin" / "vllm-python"), "-m", "vllm.entrypoints.openai.api_server"),
        *("--model", str(model), "--served-model-name", name, *address.flags()),
        *("--dtype", "float32", "--enforce-eager", "--max-model-len", str(max_model_len)),
        *("--kv-cache-memory-bytes", str(KV_CACHE_BYTES), "--distributed-executor-backend", "uni"),
        *("--no-enable-chunked-prefill", "--max-num-batched-tokens", str(max_model_len)),
        *("--generation-config", "vllm", "--enable-scale-out", "--enable-prompt-tokens-details"),
        *("--block-size", "32", *extra),
    ]


@contextmanager
def serve(
    model: Path,
    address: Address,
    log: Path,
    *,
    name: str = "m",
    max_model_len: int = 4096,
    extra: Sequence[str] = (),
    ready_within_s: float = 180,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server for the body; yields its process once `/health` answers.

    Raises:
        EngineFailed: vLLM is not set up, ended, or did not answer within `ready_within_s`.
    """
    words = command(model, address, name, max_model_len, extra)
    for part in (Path(words[0]), model / "config.json"):
        if not part.exists():
            message = f"no {part}: run `make setup`"
            raise EngineFailed(message)
    with log.open("wb") as out:
        process = subprocess.Popen(
            words,
            env={**os.environ, **_ENV},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_ready(process, address, log, ready_within_s)
        yield process
    finally:
        _stop(process)


def _wait_ready(
    process: subprocess.Popen[bytes], address: Address, log: Path, within_s: float
) -> None:
    deadline = time.monotonic() + within_s
    while not address.healthy():
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            what = f"ended with status {process.returncode}" if ended else "did not answer"
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            message = f"vLLM {what} within {within_s:.0f} s; the end of {log}:\n{tail}"
            raise EngineFailed(message)
        time.sleep(0.25)


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(STOP_S)
    with suppress(ProcessLookupError):  # whatever is left of it, its children included
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def main(argv: Sequence[str] | None = None) -> int:
    """Serve one of the cache's models, or a model folder, until it is interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a name below $ROLLOUT_CACHE/models, or a folder")
    parser.add_argument("--port", type=int, default=8101)
    parser.add_argument("--uds", type=Path, help="listen on this Unix socket instead")
    parser.add_argument("--max-model-len", type=int, default=4096)
    parser.add_argument("--log", type=Path, default=Path("engine.log"))
    options, extra = parser.parse_known_args(argv)
    cached = default_root() / "models" / options.model
    model = cached if cached.exists() else Path(options.model)
    address = Address(options.port, options.uds)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with serve(
            model, address, options.log, max_model_len=options.max_model_len, extra=extra
        ) as process:
            print(f"{model.name} answers at {options.uds or address.url()}", flush=True)
            return process.wait()
    except EngineFailed as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main())
