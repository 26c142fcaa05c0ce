"""Show one resource with all that is known about it, for people."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import typer

from rollout_client.cli.kinds import JOB, Kind, parse_object
from rollout_client.cli.options import KindArgument, NameArgument, Namespace, settings_of
from rollout_client.cli.rest import Gateway, Json
from rollout_client.cli.rollouts import failures_by_reason
from rollout_client.cli.tables import age, render_table, shorten
from rollout_client.errors import NotFound

_STAGES = ("init", "run", "eval")
_COUNTERS = ("queued", "running", "done", "failed", "cancelled")
_LONG = 100
_OUTCOMES = {"policyError": "policy_error", "infraError": "infra_error"}
"""Outcomes as records spell them, by their names in a resource."""


def describe_command(
    ctx: typer.Context,
    kind: KindArgument,
    name: NameArgument = None,
    namespace: Namespace = "default",
) -> None:
    """Show one resource with its conditions, progress and events."""
    found, object_name = parse_object(kind, name)
    gateway = settings_of(ctx).gateway()
    scope = {"namespace": namespace}
    item = gateway.get(found.path(object_name), scope)
    events = gateway.get("/v1/events", {"kind": found.kind, "name": object_name, **scope})["items"]
    progress, rollouts = _job_data(gateway, found, object_name, scope)
    print(description(item, events, progress, rollouts, datetime.now(UTC)))


def _job_data(
    gateway: Gateway, kind: Kind, name: str, scope: Mapping[str, str]
) -> tuple[Json | None, list[Json]]:
    if kind != JOB:
        return None, []
    try:
        progress = gateway.get(f"{kind.path(name)}/progress", scope)
        return progress, gateway.get(f"{kind.path(name)}/rollouts", scope)["items"]
    except NotFound:  # not handed to the queue yet
        return None, []


def description(
    item: Json,
    events: Sequence[Json],
    progress: Json | None,
    rollouts: Sequence[Json],
    now: datetime,
) -> str:
    """The text of `describe`: spec, conditions, progress, failures and events."""
    finished = [r for r in rollouts if r["state"] == "finished"]
    unfinished = [r for r in rollouts if r["state"] != "finished"]
    sections = [
        "\n".join(_head(item, now)),
        _section("Spec", list(_spec_lines(item["spec"]))),
        _section("Conditions", _conditions(item, now)),
        _section("Backends", _backends(item)),
        _section("Progress", _progress(progress) if progress else []),
        _section("Failures", failures_by_reason(finished)),
        _section("Tried again", failures_by_reason(unfinished)),
        _section("Events", _events(events, now)),
    ]
    return "\n".join(section for section in sections if section)


def _section(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *(f"  {line}" for line in lines)]) if lines else ""


def _head(item: Json, now: datetime) -> Iterator[str]:
    metadata = item["metadata"]
    yield f"Name:       {metadata['name']}"
    yield f"Kind:       {item['kind']}"
    yield f"Namespace:  {metadata.get('namespace', 'default')}"
    yield f"UID:        {metadata.get('uid', '')}"
    yield f"Age:        {age(metadata.get('creationTimestamp'), now)}"
    if metadata.get("deletionTimestamp"):
        yield f"Deleting:   since {age(metadata['deletionTimestamp'], now)}"


def _spec_lines(value: Any, prefix: str = "") -> Iterator[str]:
    """`path: value` of what is set; the tasks themselves only as a number."""
    if prefix == "tasks.inline":
        yield f"{prefix}: {len(value or [])} tasks"
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _spec_lines(inner, f"{prefix}.{key}" if prefix else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for index, inner in enumerate(value):
            yield from _spec_lines(inner, f"{prefix}[{index}]")
    elif value not in (None, [], {}, ""):
        yield f"{prefix}: {shorten(str(value), _LONG)}"


def _conditions(item: Json, now: datetime) -> list[str]:
    conditions = item.get("status", {}).get("conditions", [])
    rows = [
        [
            c["type"],
            c["status"],
            c["reason"],
            age(c.get("lastTransitionTime"), now),
            " ".join(c.get("message", "").split()),
        ]
        for c in conditions
    ]
    return _table(["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], rows)


def _backends(item: Json) -> list[str]:
    backends = item.get("status", {}).get("backends", [])
    rows = [
        [b["name"], str(b.get("healthy", False)).lower(), b["url"], b.get("message", "")]
        for b in backends
    ]
    return _table(["NAME", "HEALTHY", "URL", "MESSAGE"], rows)


def _progress(progress: Json) -> list[str]:
    stages = progress.get("stages", {})
    rows = [
        [stage, *(str(stages.get(stage, {}).get(counter, 0)) for counter in _COUNTERS)]
        for stage in _STAGES
    ]
    outcomes = progress.get("outcomes", {})
    counts = {_OUTCOMES.get(name, name): count for name, count in outcomes.items() if count}
    found = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none yet"
    tokens = f"{progress.get('promptTokens', 0)} prompt, {progress.get('outputTokens', 0)} output"
    lines = [
        *_table(["STAGE", *(name.upper() for name in _COUNTERS)], rows),
        f"finished {progress.get('finished', 0)} of {progress.get('rollouts', 0)} rollouts "
        f"in {progress.get('groups', 0)} groups: {found}",
        f"tokens: {tokens}",
    ]
    if progress.get("invalidTasks"):
        lines.append(f"refused lines of the task source: {progress['invalidTasks']}")
    return lines


def _events(events: Sequence[Json], now: datetime) -> list[str]:
    rows = [
        [
            age(event.get("lastTime"), now),
            event.get("type", "Normal"),
            event["reason"],
            f"{event['message']}{_times(event)}",
        ]
        for event in events
    ]
    return _table(["LAST", "TYPE", "REASON", "MESSAGE"], rows)


def _times(event: Json) -> str:
    return f" (x{event['count']})" if event.get("count", 1) > 1 else ""


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return render_table(header, rows).splitlines() if rows else []
