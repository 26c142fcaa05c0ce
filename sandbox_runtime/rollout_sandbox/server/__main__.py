"""Process 1 of a sandbox: serves the tools on an inherited socket until the host lets it go.

As process 1 of its PID namespace it gets no signal that it has no handler for, not even SIGKILL,
from anything in the sandbox; and being not dumpable, it can't be traced or read through `/proc`.
"""

import asyncio
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from .app import create_app
from .privileges import shed
from .processes import Reaper, process_table
from .types import ServerConfig

_REAP_SECONDS = 5.0
# The host keeps connections open for the sandbox's life.
_NEVER_SECONDS = 10**8


class _Server(uvicorn.Server):
    """A server that installs no signal handlers."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _end_with_the_worker(lifeline: int) -> None:
    """Wait, in a thread so that nothing can delay it, until the worker lets go or is gone."""
    while os.read(lifeline, 1):
        continue
    os._exit(0)


async def _reap_orphans() -> None:
    reaper = Reaper()
    while True:
        await asyncio.sleep(_REAP_SECONDS)
        reaper.scan(process_table(), os.getpid())


async def _serve(config: ServerConfig) -> None:
    reaping = asyncio.create_task(_reap_orphans())
    listener = socket.socket(fileno=config.socket_fd)
    listener.set_inheritable(False)
    app = create_app(config, dict(os.environ))
    settings = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_keep_alive=_NEVER_SECONDS,
    )
    await _Server(settings).serve(sockets=[listener])
    reaping.cancel()


def main() -> None:
    """Serve; the only argument is a `ServerConfig` as JSON."""
    config = ServerConfig.model_validate_json(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    shed()
    os.set_inheritable(config.lifeline_fd, False)
    threading.Thread(target=_end_with_the_worker, args=(config.lifeline_fd,), daemon=True).start()
    os.chdir("/")
    asyncio.run(_serve(config))


if __name__ == "__main__":
    main()
