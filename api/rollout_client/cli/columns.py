"""What a table shows of each kind: pure functions from a resource's JSON to cells."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rollout_client.cli.tables import age, shorten

Json = dict[str, Any]
_MESSAGE_WIDTH = 60


@dataclass(frozen=True)
class Column:
    """A column of a table of resources."""

    header: str
    cell: Callable[[Json], object]
    wide: bool = False
    """Only shown with `-o wide`."""


def table_of(
    kind: str, objects: Sequence[Json], now: datetime, *, wide: bool = False
) -> tuple[list[str], list[list[str]]]:
    """Header and rows for objects of one kind."""
    columns = [c for c in COLUMNS[kind] if wide or not c.wide]
    header = ["NAME", *(c.header for c in columns), "AGE"]
    rows = [_row(columns, item, now) for item in objects]
    if len({item["metadata"].get("namespace", "default") for item in objects}) > 1:
        header.insert(0, "NAMESPACE")
        for row, item in zip(rows, objects, strict=True):
            row.insert(0, item["metadata"].get("namespace", "default"))
    return header, rows


def _row(columns: Sequence[Column], item: Json, now: datetime) -> list[str]:
    metadata = item["metadata"]
    cells = [str(column.cell(item)) for column in columns]
    return [metadata["name"], *cells, age(metadata.get("creationTimestamp"), now)]


def condition(item: Json, wanted: str) -> Json:
    """A condition of a resource, empty when it is not there."""
    conditions = item.get("status", {}).get("conditions", [])
    return next((c for c in conditions if c["type"] == wanted), {})


def telling_condition(item: Json) -> Json:
    """The condition that says why an unfinished job is where it is."""
    succeeded = condition(item, "Succeeded")
    if succeeded.get("status", "Unknown") != "Unknown":
        return succeeded
    for wanted in ("Accepted", "Progressing"):
        found = condition(item, wanted)
        if found.get("status") == "False":
            return found
    return succeeded or condition(item, "Accepted")


def _status(wanted: str) -> Callable[[Json], object]:
    return lambda item: condition(item, wanted).get("status", "Unknown")


def _reason(item: Json) -> object:
    if item["metadata"].get("deletionTimestamp"):
        return "Deleting"
    return telling_condition(item).get("reason", "")


def _progress(item: Json) -> Json:
    progress: Json = item.get("status", {}).get("progress", {})
    return progress


def _outcome(name: str) -> Callable[[Json], object]:
    return lambda item: _progress(item).get("outcomes", {}).get(name, 0)


def _finished(item: Json) -> object:
    progress = _progress(item)
    return f"{progress.get('finished', 0)}/{progress.get('rollouts', 0)}"


def _of_status(part: str, whole: Callable[[Json], object]) -> Callable[[Json], object]:
    return lambda item: f"{item.get('status', {}).get(part, 0)}/{whole(item)}"


def _backends(item: Json) -> int:
    return len(item.get("status", {}).get("backends", []))


def _replicas(item: Json) -> object:
    return item.get("status", {}).get("replicas", 0)


def _ready_reason(item: Json) -> object:
    return condition(item, "Ready").get("reason", "")


def _ready_message(item: Json) -> object:
    return shorten(condition(item, "Ready").get("message", ""), _MESSAGE_WIDTH)


def _pod_message(item: Json) -> object:
    return shorten(item.get("status", {}).get("message", ""), _MESSAGE_WIDTH)


COLUMNS: dict[str, tuple[Column, ...]] = {
    "RolloutJob": (
        Column("SUCCEEDED", _status("Succeeded")),
        Column("REASON", _reason),
        Column("FINISHED", _finished),
        Column("SCORED", _outcome("scored")),
        Column("INFRA-ERRORS", _outcome("infraError"), wide=True),
        Column("LLM", lambda item: item["spec"]["llm"]["poolRef"]["name"], wide=True),
        Column("HANDLER", lambda item: item["spec"]["handler"], wide=True),
        Column("OUTPUT-TOKENS", lambda item: _progress(item).get("outputTokens", 0), wide=True),
    ),
    "RolloutPool": (
        Column("READY", _status("Ready")),
        Column("REASON", _ready_reason),
        Column("PODS", _of_status("readyReplicas", _replicas)),
    ),
    "LLMPool": (
        Column("READY", _status("Ready")),
        Column("REASON", _ready_reason),
        Column("BACKENDS", _of_status("healthyBackends", _backends)),
        Column("MODEL", lambda item: item["spec"]["model"]),
        Column(
            "MESSAGE",
            lambda item: shorten(condition(item, "Ready").get("message", ""), 60),
            wide=True,
        ),
    ),
    "Pod": (
        Column("PHASE", lambda item: item.get("status", {}).get("phase", "Pending")),
        Column("RESTARTS", lambda item: item.get("status", {}).get("restartCount", 0)),
        Column("NODE", lambda item: item["spec"].get("nodeName") or "<none>"),
        Column(
            "MESSAGE",
            lambda item: shorten(item.get("status", {}).get("message", ""), 60),
            wide=True,
        ),
    ),
}
