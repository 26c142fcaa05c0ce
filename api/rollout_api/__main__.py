"""The gateway's process: arguments, one database, one listening socket, a clean end."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

import uvicorn
import uvloop
from fastapi import FastAPI

from rollout_api.app import create_app
from rollout_api.services.hub import Hub
from rollout_api.settings import Settings
from rollout_api.store.database import Database
from rollout_api.store.errors import StoreError
from rollout_crds.locations import MAX_SOCKET_PATH, StateDirectory, state_dir


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the gateway until SIGTERM or SIGINT; the exit status is 0 after a clean end."""
    options = _parse(arguments)
    os.umask(0o077)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        database = Database(options.db)
        listener = _listen(options)
    except (StoreError, OSError) as error:
        print(f"rollout-gateway: {error}", file=sys.stderr)
        return 1
    try:
        settings = Settings(options.lease_seconds, options.max_body_bytes)
        uvloop.run(_serve(create_app(settings, database), listener))
    finally:
        database.close()
        if options.uds is not None:
            options.uds.unlink(missing_ok=True)
    return 0


class _Server(uvicorn.Server):
    """Ends long polls as soon as it is asked to stop."""

    def __init__(self, config: uvicorn.Config, hub: Hub) -> None:
        super().__init__(config)
        self._loop = asyncio.get_running_loop()
        self._hub = hub

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop serving; unlike in the base class the process then ends by itself, cleanly."""
        self.force_exit = self.should_exit and sig == signal.SIGINT
        self.should_exit = True
        self._loop.call_soon_threadsafe(self._hub.close)


async def _serve(app: FastAPI, listener: socket.socket) -> None:
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=10,
        timeout_keep_alive=75,
    )
    server = _Server(config, app.state.gateway.hub)
    await server.serve(sockets=[listener])


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="rollout-gateway", description=__doc__)
    defaults = Settings()
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=state_dir(os.environ),
        help="folder of the database and the socket [env ROLLOUT_STATE_DIR]",
    )
    parser.add_argument("--db", type=Path, help="database file [STATE_DIR/gateway.db]")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--uds", type=Path, help="Unix socket [STATE_DIR/run/gateway.sock]")
    where.add_argument("--port", type=int, help="listen on TCP instead")
    parser.add_argument("--host", default="127.0.0.1", help="address for --port")
    parser.add_argument("--lease-seconds", type=float, default=defaults.lease_seconds)
    parser.add_argument("--max-body-bytes", type=int, default=defaults.most_body_bytes)
    options = parser.parse_args(arguments)
    places = StateDirectory(options.state_dir)
    options.db = (options.db or places.database).absolute()
    if options.port is None and options.uds is None:
        options.uds = places.gateway_socket
    return options


def _listen(options: argparse.Namespace) -> socket.socket:
    if options.uds is None:
        return socket.create_server((options.host, options.port))
    return _listen_on_unix_socket(options.uds.absolute())


def _listen_on_unix_socket(path: Path) -> socket.socket:
    """Bind the socket; one that is left from an earlier process is replaced."""
    if len(os.fsencode(path)) > MAX_SOCKET_PATH:
        msg = f"socket path {path} is longer than {MAX_SOCKET_PATH} bytes: choose another --uds"
        raise OSError(msg)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.is_socket():
        path.unlink()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    path.chmod(0o600)
    listener.listen(2048)
    return listener


if __name__ == "__main__":
    sys.exit(main())
