"""The `rollout-slurm` command: builds the ports and runs the bridge."""

import argparse
import asyncio
import getpass
import hashlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path

from rollout_client.transport import Transport
from rollout_crds.locations import (
    StateDirectory,
    cache_dir,
    images_dir,
    models_dir,
    parse_server_url,
    state_dir,
)
from rollout_slurm.bridge import Bridge
from rollout_slurm.builder import Site
from rollout_slurm.cluster import EmbeddedPods
from rollout_slurm.command_line import CommandLine
from rollout_slurm.ports import SlurmControl
from rollout_slurm.rest import Rest


def main(argv: Sequence[str] | None = None) -> None:
    """Run the bridge until SIGTERM or SIGINT; its jobs go on."""
    options = _parse(argv)
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stderr
    )
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    asyncio.run(_run(options))


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="rollout-slurm", description="Runs stage pods as jobs of a Slurm cluster."
    )
    parser.add_argument(
        "--state-dir",
        type=Path,
        default=state_dir(os.environ),
        help="state directory of the node, on a file system that compute nodes share "
        "(default: %(default)s)",
    )
    parser.add_argument("--gateway-url", help="default: the socket in the state directory")
    parser.add_argument(
        "--worker-gateway-url", help="the gateway as compute nodes reach it (default: the same)"
    )
    parser.add_argument(
        "--scratch",
        default="/tmp",  # noqa: S108 - each job makes a directory of mode 0700 in it
        help="directory on the compute nodes for sandboxes; not on NFS (default: %(default)s)",
    )
    parser.add_argument(
        "--rest-url", help="slurmrestd, instead of sbatch, squeue and scancel on this machine"
    )
    parser.add_argument(
        "--rest-token-file", type=Path, help="file with a token for slurmrestd, mode 0600"
    )
    options = parser.parse_args(argv)
    if (options.rest_url is None) != (options.rest_token_file is None):
        parser.error("--rest-url and --rest-token-file go together")
    state = StateDirectory(options.state_dir.absolute())
    options.gateway_url = options.gateway_url or state.gateway_url
    options.worker_gateway_url = options.worker_gateway_url or options.gateway_url
    try:
        parse_server_url(options.gateway_url)
        parse_server_url(options.worker_gateway_url)
        if options.rest_url is not None:
            parse_server_url(options.rest_url)
    except ValueError as error:
        parser.error(str(error))
    return options


def site_of(options: argparse.Namespace, inherited: Mapping[str, str]) -> Site:
    """What the jobs of this bridge find on the compute nodes."""
    state, cache = StateDirectory(options.state_dir.absolute()), cache_dir(inherited)
    search = [str(cache / "bin"), str(Path(sys.executable).parent), inherited.get("PATH", "")]
    return Site(
        bridge=hashlib.sha256(str(state.root).encode()).hexdigest()[:12],
        environment={
            "PATH": ":".join(part for part in search if part),
            "PYTHONUNBUFFERED": "1",
            "ROLLOUT_GATEWAY_URL": options.worker_gateway_url,
            "ROLLOUT_BLOB_URL": f"file://{state.blobs}",
            "ROLLOUT_CACHE": str(cache),
            "ROLLOUT_MODELS": str(models_dir(inherited)),
            "ROLLOUT_IMAGES": str(images_dir(inherited)),
        },
        logs=state.logs,
        scratch=options.scratch,
    )


def _control(options: argparse.Namespace, path: str) -> SlurmControl:
    if options.rest_url is None:
        return CommandLine()
    return Rest(options.rest_url, getpass.getuser(), options.rest_token_file, path)


async def _run(options: argparse.Namespace) -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine always runs in a task
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    site = site_of(options, os.environ)
    slurm = _control(options, site.environment["PATH"])
    async with aclosing(slurm), Transport(options.gateway_url) as transport:
        bridge = Bridge(EmbeddedPods(transport), slurm, site)
        try:
            await bridge.run()
        except asyncio.CancelledError:
            logging.getLogger(__name__).info("stopped after %d requests to Slurm", slurm.requests)


if __name__ == "__main__":
    main()
