"""Create or change the resources of manifests: all of them, or none."""

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

from rollout_client.cli.failure import FAILED, INVALID, CliError, gateway_lines
from rollout_client.cli.kinds import KINDS, Kind
from rollout_client.cli.options import Files, settings_of
from rollout_client.cli.rest import Gateway, Json
from rollout_client.errors import GatewayError, Invalid, NotFound

if TYPE_CHECKING:
    from rollout_client.cli.sources import Source

_BY_KIND = {kind.kind: kind for kind in KINDS}


def apply_command(ctx: typer.Context, filename: Files) -> None:
    """Create or change the resources of a manifest; an invalid manifest changes nothing."""
    from rollout_client.cli.sources import check_task_files, load_sources

    sources = load_sources(filename)
    print_warnings(check_task_files(sources))
    for line in apply_sources(settings_of(ctx).gateway(), sources):
        print(line)


def print_warnings(warnings: Iterable[str]) -> None:
    """Print `warning:` lines."""
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def apply_sources(gateway: Gateway, sources: Sequence["Source"]) -> list[str]:
    """Apply resources in order; when one is refused, those before it are put back.

    Returns:
        `PLURAL/NAME created`, `configured` or `unchanged` for each.

    Raises:
        CliError: The gateway refused one of them.
        Unavailable: There is no gateway.
    """
    done: list[tuple[Source, Json | None]] = []
    lines: list[str] = []
    for source in sources:
        try:
            before = existing(gateway, source)
            after = gateway.put(*_target(source), body_of(source))
        except GatewayError as error:
            _put_back(gateway, done)
            if error.status == 0:
                raise
            code = INVALID if isinstance(error, Invalid) else FAILED
            raise CliError(gateway_lines(error, source.label), code) from error
        done.append((source, before))
        lines.append(f"{_name(source)} {_verb(before, after)}")
    return lines


def existing(gateway: Gateway, source: "Source") -> Json | None:
    """The object of that name as it is now, or None."""
    try:
        return gateway.get(*_target(source))
    except NotFound:
        return None


def body_of(source: "Source") -> Json:
    """The object as it is sent."""
    return source.resource.model_dump(
        mode="json", by_alias=True, exclude_none=True, exclude={"status"}
    )


def _put_back(gateway: Gateway, done: Sequence[tuple["Source", Json | None]]) -> None:
    for source, before in reversed(done):
        path, query = _target(source)
        if before is None:
            gateway.delete(path, query)
        else:
            gateway.put(path, query, before)


def _target(source: "Source") -> tuple[str, dict[str, str]]:
    metadata = source.resource.metadata
    return _kind(source).path(metadata.name), {"namespace": metadata.namespace}


def _kind(source: "Source") -> Kind:
    return _BY_KIND[source.resource.kind]


def _name(source: "Source") -> str:
    return f"{_kind(source).plural}/{source.resource.metadata.name}"


def _verb(before: Json | None, after: Json) -> str:
    if before is None:
        return "created"
    same = before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    return "unchanged" if same else "configured"
