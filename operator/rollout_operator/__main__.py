"""The `rollout-operator` command: builds the ports and runs the reconciler."""

import argparse
import asyncio
import logging
import os
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from rollout_client.transport import Transport
from rollout_crds.locations import StateDirectory, parse_server_url, state_dir
from rollout_operator.embedded import EmbeddedCluster, HttpGateway
from rollout_operator.errors import OperatorError
from rollout_operator.probe import HttpEngineProbe
from rollout_operator.reconciler import Reconciler
from rollout_operator.sites import LOCAL_NODE, KubernetesSite, LocalSite


def main(argv: Sequence[str] | None = None) -> None:
    """Run the operator until SIGTERM or SIGINT."""
    args = _parse(argv)
    logging.basicConfig(
        level=args.log_level.upper(),
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        stream=sys.stderr,
    )
    for chatty in ("httpx2", "kopf.objects"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    if args.embedded:
        asyncio.run(_run_embedded(args.gateway_url, args.state_dir))
    else:
        try:
            asyncio.run(_run_on_kubernetes(args))
        except* OperatorError as failed:
            sys.exit(f"rollout-operator: {failed.exceptions[0]}")


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    state = state_dir(os.environ)
    parser = argparse.ArgumentParser(
        prog="rollout-operator", description="Reconciles RolloutJobs, RolloutPools and LLMPools."
    )
    parser.add_argument(
        "--embedded",
        action="store_true",
        help="resources in the gateway's store and pods on the local node; not on Kubernetes",
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
    _add_kubernetes_options(parser.add_argument_group("on Kubernetes"))
    args = parser.parse_args(argv)
    args.gateway_url = args.gateway_url or StateDirectory(args.state_dir).gateway_url
    try:
        parse_server_url(args.gateway_url)
    except ValueError as error:
        parser.error(str(error))
    return args


def _add_kubernetes_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--namespace",
        action="append",
        default=[],
        dest="namespaces",
        help="look after this one only; may be repeated (default: all)",
    )
    group.add_argument("--lease-namespace", default="default", help="default: %(default)s")
    group.add_argument("--lease-seconds", type=int, default=15, help="default: %(default)s")
    group.add_argument(
        "--identity",
        default=os.environ.get("HOSTNAME") or socket.gethostname(),
        help="holder of the Lease that lets one operator work (default: the host's name)",
    )
    group.add_argument("--liveness", help="URL to answer probes at: http://0.0.0.0:8080/healthz")
    group.add_argument(
        "--pod-templates", type=Path, help="YAML: image, pod, container, env per role"
    )


async def _run_on_kubernetes(args: argparse.Namespace) -> None:
    from rollout_operator.kubernetes.election import LeaseSettings
    from rollout_operator.kubernetes.run import Settings, run
    from rollout_operator.kubernetes.templates import load_templates

    await run(
        Settings(
            gateway_url=args.gateway_url,
            lease=LeaseSettings(
                args.lease_namespace, args.identity, duration_seconds=args.lease_seconds
            ),
            site=KubernetesSite(args.gateway_url, load_templates(args.pod_templates)),
            namespaces=tuple(args.namespaces),
            liveness_endpoint=args.liveness,
        )
    )


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
            LocalSite(LOCAL_NODE, StateDirectory(state).run),
        )
        try:
            await reconciler.run()
        except asyncio.CancelledError:
            logging.getLogger(__name__).info("stopped")


if __name__ == "__main__":
    main()
