"""Show resources as a table or as data, once or as they change."""

import json
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from rollout_client.cli.columns import table_of
from rollout_client.cli.failure import INVALID, CliError
from rollout_client.cli.kinds import Kind, parse_target
from rollout_client.cli.options import (
    KindArgument,
    NameArgument,
    Namespace,
    ResourceOutput,
    settings_of,
)
from rollout_client.cli.rest import Gateway, Json
from rollout_client.cli.tables import render_table

WATCH_SECONDS = 20.0
RESTART_PATIENCE_SECONDS = 60.0


def get_command(
    ctx: typer.Context,
    kind: KindArgument,
    name: NameArgument = None,
    namespace: Namespace = "default",
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A")] = False,
    output: Annotated[ResourceOutput, typer.Option("--output", "-o")] = ResourceOutput.TABLE,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Go on with each change until interrupted")
    ] = False,
) -> None:
    """List resources, or show one."""
    found, object_name = parse_target(kind, name)
    if watch and output not in {ResourceOutput.TABLE, ResourceOutput.WIDE, ResourceOutput.NAME}:
        msg = "--watch goes with -o table, wide or name"
        raise CliError(msg, INVALID)
    gateway = settings_of(ctx).gateway(RESTART_PATIENCE_SECONDS if watch else 0.0)
    query = {} if all_namespaces else {"namespace": namespace}
    if object_name is None:
        answer = gateway.get(found.path(), query)
        items, version = answer["items"], answer["resourceVersion"]
    else:
        answer = gateway.get(found.path(object_name), {"namespace": namespace})
        items, version = [answer], answer["metadata"]["resourceVersion"]
    _show(found, items, output, single=object_name is not None)
    if watch:
        scope = None if all_namespaces else namespace
        _watch(gateway, found, _Selection(object_name, scope), output, version)


class _Selection:
    def __init__(self, name: str | None, namespace: str | None) -> None:
        self._name = name
        self._namespace = namespace

    def has(self, change: Json) -> bool:
        return (
            change.get("object") is not None
            and self._name in {None, change["name"]}
            and self._namespace in {None, change["namespace"]}
        )


def _watch(
    gateway: Gateway, kind: Kind, selection: _Selection, output: ResourceOutput, since: str
) -> None:
    while True:
        query = {"since": since, "kinds": kind.kind, "timeoutSeconds": WATCH_SECONDS}
        changes = gateway.get("/v1/changes", query, hold_seconds=WATCH_SECONDS)
        since = changes["resourceVersion"]
        items = [c["object"] for c in changes["changed"] if selection.has(c)]
        if items:
            _show(kind, items, output, single=False)


def _show(kind: Kind, items: list[Json], output: ResourceOutput, *, single: bool) -> None:
    print(_rendered(kind, items, output, single=single), flush=True)


def _rendered(kind: Kind, items: list[Json], output: ResourceOutput, *, single: bool) -> str:
    if output is ResourceOutput.NAME:
        return "\n".join(f"{kind.plural}/{item['metadata']['name']}" for item in items)
    if output in {ResourceOutput.JSON, ResourceOutput.YAML}:
        return _data(items[0] if single else {"items": items}, output)
    if not items:
        return f"no {kind.plural}"
    wide = output is ResourceOutput.WIDE
    return render_table(*table_of(kind.kind, items, datetime.now(UTC), wide=wide))


def _data(value: Any, output: ResourceOutput) -> str:
    if output is ResourceOutput.JSON:
        return json.dumps(value, indent=2)
    import yaml

    return str(yaml.safe_dump(value, sort_keys=False)).rstrip()
