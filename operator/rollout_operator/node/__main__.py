"""The `rollout-node` command."""

import argparse
import asyncio
import logging
import logging.handlers
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rollout_crds.locations import state_dir
from rollout_operator.node.errors import NodeError
from rollout_operator.node.node import NodeSettings, run_node
from rollout_operator.node.paths import NodePaths, locked

_LOG_BYTES = 4 * 1024 * 1024


def main(argv: Sequence[str] | None = None) -> None:
    """Run the node until SIGTERM, SIGINT or SIGHUP; exit code 1 when it cannot start."""
    settings = _parse(argv)
    try:
        settings.paths.make()
        with locked(settings.paths):
            _log_to(settings.paths.node_log)
            settings.paths.ready_file.unlink(missing_ok=True)
            asyncio.run(_run_until_signal(settings))
    except NodeError as error:
        sys.exit(f"rollout-node: {error}")


def _parse(argv: Sequence[str] | None) -> NodeSettings:
    parser = argparse.ArgumentParser(
        prog="rollout-node",
        description="Runs gateway, operator, stage workers and inference servers on this machine.",
    )
    parser.add_argument(
        "--state-dir", type=Path, default=state_dir(os.environ), help="default: %(default)s"
    )
    parser.add_argument(
        "--no-operator", action="store_true", help="run no operator: pods are declared by others"
    )
    args = parser.parse_args(argv)
    return NodeSettings(
        NodePaths(args.state_dir.absolute()),
        gateway=("rollout-gateway",),
        operator=None if args.no_operator else ("rollout-operator", "--embedded"),
    )


def _log_to(path: Path) -> None:
    handlers: list[logging.Handler] = [
        logging.handlers.RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1)
    ]
    if sys.stderr.isatty():
        handlers.append(logging.StreamHandler())
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", handlers=handlers
    )
    logging.getLogger("httpx2").setLevel(logging.WARNING)


async def _run_until_signal(settings: NodeSettings) -> None:
    """Only the first signal counts: the stop that it begins is bounded in time."""
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    node = asyncio.create_task(run_node(settings, os.environ))
    asked = asyncio.create_task(stop.wait())
    await asyncio.wait((node, asked), return_when=asyncio.FIRST_COMPLETED)
    node.cancel()
    asked.cancel()
    try:
        await node
    except asyncio.CancelledError:
        logging.getLogger(__name__).info("stopped")


if __name__ == "__main__":
    main()
