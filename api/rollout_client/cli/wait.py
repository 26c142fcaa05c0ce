"""Wait until a resource is as wanted, or gone."""

import time
from typing import Annotated

import typer

from rollout_client.cli.columns import condition
from rollout_client.cli.failure import INVALID, CliError
from rollout_client.cli.kinds import Kind, parse_object
from rollout_client.cli.options import KindArgument, NameArgument, Namespace, settings_of
from rollout_client.cli.rest import Gateway, Json
from rollout_client.errors import NotFound

LONG_POLL_SECONDS = 20.0
RESTART_PATIENCE_SECONDS = 30.0
Wanted = tuple[str, str]
"""Condition type and status."""
_UNITS = {"s": 1, "m": 60, "h": 3600}


def wait_command(
    ctx: typer.Context,
    kind: KindArgument,
    name: NameArgument = None,
    for_: Annotated[
        str, typer.Option("--for", metavar="condition=TYPE[=STATUS]|delete")
    ] = "condition=Succeeded",
    timeout: Annotated[str, typer.Option(help="Such as 90s, 10m or 2h")] = "30m",
    namespace: Namespace = "default",
) -> None:
    """Wait for a condition of a resource, or for its deletion; exit code 1 when it cannot come."""
    found, object_name = parse_object(kind, name)
    wanted = parse_wanted(for_)
    gateway = settings_of(ctx).gateway(RESTART_PATIENCE_SECONDS)
    deadline = time.monotonic() + parse_seconds(timeout)
    label = f"{found.kind}/{object_name}"
    if wanted is None:
        await_deletion(gateway, found, object_name, namespace, deadline)
        print(f"{label} deleted")
    else:
        _await_condition(gateway, found, object_name, namespace, wanted, deadline)
        print(f"{label} condition met")


def parse_wanted(text: str) -> Wanted | None:
    """Condition type and status in a `--for`; None for `delete`.

    Raises:
        CliError: It is neither.
    """
    if text == "delete":
        return None
    word, _, rest = text.partition("=")
    type_, _, status = rest.partition("=")
    status = (status or "True").capitalize()
    if word != "condition" or not type_ or status not in {"True", "False", "Unknown"}:
        msg = f"--for={text}: write condition=TYPE, condition=TYPE=False or delete"
        raise CliError(msg, INVALID)
    return type_, status


def parse_seconds(text: str) -> float:
    """Seconds in `90`, `90s`, `10m` or `2h`.

    Raises:
        CliError: It is none of these.
    """
    unit = _UNITS.get(text[-1:], 0)
    number = text[:-1] if unit else text
    try:
        return float(number) * (unit or 1)
    except ValueError as error:
        msg = f"--timeout={text}: write a time such as 90s, 10m or 2h"
        raise CliError(msg, INVALID) from error


def await_deletion(
    gateway: Gateway, kind: Kind, name: str, namespace: str, deadline: float
) -> None:
    """Return when there is no such object.

    Raises:
        CliError: It is still there at `deadline` (monotonic seconds).
    """
    while True:
        try:
            item = gateway.get(kind.path(name), {"namespace": namespace})
        except NotFound:
            return
        _next_change(gateway, kind, item, deadline, f"{kind.kind}/{name} is still there")


def _await_condition(
    gateway: Gateway,
    kind: Kind,
    name: str,
    namespace: str,
    wanted: tuple[str, str],
    deadline: float,
) -> None:
    type_, status = wanted
    while True:
        item = gateway.get(kind.path(name), {"namespace": namespace})
        found = condition(item, type_)
        if found.get("status") == status:
            return
        now = f"{type_} is {found.get('status', 'not set')}: {_why(found)}"
        if type_ == "Succeeded" and (refusal := _final(item, found)):
            msg = f"{kind.kind}/{name}: {refusal}"
            raise CliError(msg)
        _next_change(gateway, kind, item, deadline, f"{kind.kind}/{name}: {now}")


def _final(item: Json, succeeded: Json) -> str | None:
    """Why a job can never succeed, if so."""
    if succeeded.get("status") == "False":
        return f"Succeeded is False: {_why(succeeded)}"
    accepted = condition(item, "Accepted")
    return f"Accepted is False: {_why(accepted)}" if accepted.get("status") == "False" else None


def _why(found: Json) -> str:
    return ": ".join(filter(None, (found.get("reason"), found.get("message")))) or "no reason yet"


def _next_change(gateway: Gateway, kind: Kind, item: Json, deadline: float, late: str) -> None:
    seconds = min(LONG_POLL_SECONDS, deadline - time.monotonic())
    if seconds <= 0:
        msg = f"timed out; {late}"
        raise CliError(msg)
    since = item["metadata"]["resourceVersion"]
    query = {"since": since, "kinds": kind.kind, "timeoutSeconds": seconds}
    gateway.get("/v1/changes", query, hold_seconds=seconds)
