"""Start and stop gateway, operator and node on this machine."""

import os
import sys
import time
from typing import Annotated

import typer

from rollout_client.cli.failure import CliError
from rollout_client.cli.kinds import KINDS
from rollout_client.cli.node import LocalNode, alive
from rollout_client.cli.options import settings_of
from rollout_client.cli.rest import Gateway, Json
from rollout_client.errors import GatewayError, NotFound

DEFAULT_POOL = "default"
_POOLS = KINDS[1]
_POOL_SECONDS = 30.0


def up_command(
    ctx: typer.Context,
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when it is ready")] = False,
    pool: Annotated[
        bool,
        typer.Option("--pool/--no-pool", help="Keep a RolloutPool `default` of warm stage pods"),
    ] = True,
) -> None:
    """Start gateway, operator and node on this machine; Ctrl-C or `rolloutctl down` stops them.

    What was there before is resumed from the state directory.
    """
    node = LocalNode(settings_of(ctx).state_dir)
    node.require_stopped()
    if detach:
        process = node.start(tied=False)
        _announce(node, process.pid, pool)
    else:
        _announce_from_aside(node, pool)
        node.replace_this_process()


def down_command(ctx: typer.Context) -> None:
    """Stop what `up` started; resources, queue and results stay in the state directory."""
    node = LocalNode(settings_of(ctx).state_dir)
    pid = node.running_pid()
    if pid is None:
        print(f"nothing runs on {node.state_dir}")
        return
    node.stop(pid)
    print(f"stopped (process {pid}); `rolloutctl up` resumes from {node.state_dir}")


def _announce_from_aside(node: LocalNode, pool: bool) -> None:
    """Watch the start from a process that is no child of the node this process becomes."""
    node_pid = os.getpid()
    sys.stdout.flush()
    if (between := os.fork()) != 0:
        os.waitpid(between, 0)
        return
    if os.fork() == 0:
        try:
            _announce(node, node_pid, pool)
        except (CliError, GatewayError) as error:
            if alive(node_pid):  # else it has told itself why
                print(f"error: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            pass
        sys.stdout.flush()
    os._exit(0)


def _announce(node: LocalNode, pid: int, pool: bool) -> None:
    node.await_ready(pid)
    lines = [
        f"up on this machine (process {pid})",
        f"  gateway  {node.url}",
        f"  state    {node.state_dir}",
        f"  logs     {node.log.parent}",
    ]
    if pool:
        lines.append(f"  pool     {ensure_default_pool(Gateway(node.url, 10.0))}")
    print("\n".join(lines), flush=True)


def ensure_default_pool(gateway: Gateway) -> str:
    """Make the pool `default` unless there is one, and wait a little for its stage pods.

    Returns:
        What is there, in words.
    """
    path, query = _POOLS.path(DEFAULT_POOL), {"namespace": "default"}
    try:
        gateway.get(path, query)
    except NotFound:
        gateway.put(path, query, default_pool())
    deadline = time.monotonic() + _POOL_SECONDS
    while True:
        status = gateway.get(path, query).get("status", {})
        ready, wanted = status.get("readyReplicas", 0), status.get("replicas", 0)
        if (ready == wanted > 0) or time.monotonic() > deadline:
            return f"{DEFAULT_POOL}: {ready} of {wanted} stage pods run"
        time.sleep(0.2)


def default_pool() -> Json:
    """A pool with one warm stage pod per stage."""
    return {
        "apiVersion": "rollout-operator.dev/v1alpha1",
        "kind": _POOLS.kind,
        "metadata": {"name": DEFAULT_POOL, "namespace": "default"},
        "spec": {},
    }
