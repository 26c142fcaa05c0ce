"""Delete resources, by name or as a manifest names them."""

import time
from typing import Annotated

import typer

from rollout_client.cli.failure import INVALID, CliError
from rollout_client.cli.kinds import KINDS, Kind, parse_object
from rollout_client.cli.options import NameArgument, Namespace, settings_of
from rollout_client.cli.wait import await_deletion
from rollout_client.errors import NotFound

Target = tuple[Kind, str, str]
"""Kind, name and namespace."""


def delete_command(
    ctx: typer.Context,
    kind: Annotated[str | None, typer.Argument(metavar="KIND")] = None,
    name: NameArgument = None,
    filename: Annotated[
        list[str] | None, typer.Option("--filename", "-f", help="What this manifest names")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it is gone")] = True,
    timeout_seconds: Annotated[float, typer.Option("--timeout", help="Seconds to wait")] = 120.0,
    ignore_not_found: Annotated[bool, typer.Option("--ignore-not-found")] = False,
    namespace: Namespace = "default",
) -> None:
    """Delete resources; a job's records go with it."""
    gateway = settings_of(ctx).gateway()
    deadline = time.monotonic() + timeout_seconds
    for found, object_name, space in _targets(kind, name, filename or [], namespace):
        try:
            gateway.delete(found.path(object_name), {"namespace": space})
        except NotFound:
            if not ignore_not_found:
                raise
            continue
        if wait:
            await_deletion(gateway, found, object_name, space, deadline)
        print(f"{found.plural}/{object_name} deleted")


def _targets(kind: str | None, name: str | None, files: list[str], namespace: str) -> list[Target]:
    if (kind is None) == (not files):
        msg = "name either KIND NAME or -f FILE"
        raise CliError(msg, INVALID)
    if kind is not None:
        return [(*parse_object(kind, name), namespace)]
    from rollout_client.cli.sources import load_sources

    by_kind = {found.kind: found for found in KINDS}
    resources = [source.resource for source in load_sources(files)]
    return [
        (by_kind[item.kind], item.metadata.name, item.metadata.namespace)
        for item in reversed(resources)
    ]
