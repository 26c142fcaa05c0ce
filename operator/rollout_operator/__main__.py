"""The `rollout-operator` command: builds the ports and runs the reconciler."""

import argparse
import asyncio
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from rollout_client.transport import Transport
from rollout_crds.locations import StateDirectory, parse_server_url, state_dir
from rollout_operator.embedded import EmbeddedCluster, HttpGateway
from rollout_operator.pods import LOCAL_NODE, Site
from rollout_operator.probe import HttpEngineProbe
from rollout_operator.reconciler import Reconciler


def main(argv: Sequence[str] | None = None) -> None:
    """Run the operator until SIGTERM or SIGINT."""
    args = _parse(argv)
    logging.basicConfig(
        level=args.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    asyncio.run(_run_embedded(args.gateway_url, args.state_dir))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    state = state_dir(os.environ)
    parser = argparse.ArgumentParser(
        prog="rollout-operator", description="Reconciles RolloutJobs, RolloutPools and LLMPools."
    )
    parser.add_argument(
        "--embedded",
        action="store_true",
        required=True,
        help="resources in the gateway's store and pods on the local node",
    )
    parser.add_argument("--state-dir", type=Path, default=state, help="default: %(default)s")
    parser.add_argument(
        "--gateway-url",
        default=os.environ.get("ROLLOUT_GATEWAY_URL"),
        help="default: the socket in the state directory",
    )
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info"
    )
    args = parser.parse_args(argv)
    args.gateway_url = args.gateway_url or StateDirectory(args.state_dir).gateway_url
    try:
        parse_server_url(args.gateway_url)
    except ValueError as error:
        parser.error(str(error))
    return args


async def _run_embedded(gateway_url: str, state: Path) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine always runs in a task
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    async with Transport(gateway_url) as transport:
        reconciler = Reconciler(
            EmbeddedCluster(transport),
            HttpGateway(transport),
            HttpEngineProbe(),
            Site(LOCAL_NODE, StateDirectory(state).run),
        )
        try:
            await reconciler.run()
        except asyncio.CancelledError:
            logging.getLogger(__name__).info("stopped")


if __name__ == "__main__":
    main()
