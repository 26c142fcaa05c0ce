"""List the rollouts of a job."""

import json
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from statistics import fmean
from typing import TYPE_CHECKING, Annotated

import typer

from rollout_client.cli.options import JobArgument, Namespace, settings_of
from rollout_client.cli.rest import Json
from rollout_client.cli.tables import number, render_table, shorten

if TYPE_CHECKING:
    from rollout_crds.result import RolloutRecord

HEADER = (
    *("TASK", "SAMPLE", "STATE", "OUTCOME", "REWARD", "TURNS", "TOKENS-IN", "TOKENS-OUT"),
    *("INIT-S", "RUN-S", "EVAL-S", "FAILURE"),
)
_EXAMPLE_WIDTH = 600


class RolloutsOutput(StrEnum):
    """Forms of `rollouts`."""

    TABLE = "table"
    JSON = "json"


def rollouts_command(
    ctx: typer.Context,
    job: JobArgument,
    output: Annotated[RolloutsOutput, typer.Option("--output", "-o")] = RolloutsOutput.TABLE,
    namespace: Namespace = "default",
) -> None:
    """List the rollouts of a job: where each is, and how it ended."""
    path = f"/v1/rolloutjobs/{job}/rollouts"
    items = settings_of(ctx).gateway().get(path, {"namespace": namespace})["items"]
    if output is RolloutsOutput.JSON:
        print(json.dumps({"items": items}, indent=2))
    else:
        print(rollouts_table(items))


def rollouts_table(items: Sequence[Json]) -> str:
    """A table of `RolloutSummary` objects, without the columns that would tell nothing."""
    rows = [rollout_cells(item) for item in items]
    silent = {
        *([] if any(item["state"] != "finished" for item in items) else ["STATE"]),
        *([] if any(item.get("failure") for item in items) else ["FAILURE"]),
    }
    kept = [index for index, name in enumerate(HEADER) if not items or name not in silent]
    return render_table([HEADER[i] for i in kept], [[row[i] for i in kept] for row in rows])


def rollout_cells(item: Json) -> list[str]:
    """The cells of one rollout, as `HEADER` names them."""
    finished = item["state"] == "finished"
    failure = item.get("failure") or {}
    return [
        item["task_id"],
        str(item["sample_index"]),
        "finished" if finished else f"{item['state']} ({item['stage']})",
        item.get("outcome") or "-",
        number(item.get("reward"), 3),
        str(item.get("turns", 0)),
        str(item.get("prompt_tokens", 0)),
        str(item.get("output_tokens", 0)),
        *(number(item.get(f"{stage}_seconds")) for stage in ("init", "run", "eval")),
        _failure_cell(failure, finished=finished) if failure else "",
    ]


def _failure_cell(failure: Json, *, finished: bool) -> str:
    cause = f"{failure['stage']}: {failure['reason']}"
    return cause if finished else f"{cause} in attempt {failure['attempt']}, tried again"


def record_summary(record: "RolloutRecord") -> Json:
    """A finished rollout as the gateway summarises it."""
    trajectory = record.trajectory
    failure = record.failure
    seconds = {f"{stage.value}_seconds": t.active_seconds for stage, t in record.stages.items()}
    return {
        **record.model_dump(
            mode="json", include={"task_id", "sample_index", "outcome", "reward", "trainable"}
        ),
        "state": "finished",
        "failure": failure.model_dump(mode="json") if failure else None,
        "turns": len(trajectory.calls) if trajectory else 0,
        "prompt_tokens": trajectory.prompt_tokens if trajectory else 0,
        "output_tokens": trajectory.output_tokens if trajectory else 0,
        **seconds,
    }


def summary_lines(items: Sequence[Json]) -> list[str]:
    """How many were scored and trainable, the mean reward, and the failures by reason.

    The mean is taken over scored rollouts alone: an infrastructure failure has no reward.
    """
    scored = [item for item in items if item.get("outcome") == "scored"]
    trainable = sum(bool(item.get("trainable")) for item in items)
    mean = f", mean reward {number(fmean(r['reward'] for r in scored), 3)}" if scored else ""
    lines = [f"{len(scored)} of {len(items)} rollouts scored{mean}, {trainable} trainable"]
    others = Counter(item.get("outcome") or "unfinished" for item in items)
    del others["scored"]
    lines += (f"{count} {name}" for name, count in others.items())
    return [*lines, *(f"  {line}" for line in failures_by_reason(items))]


def failures_by_reason(items: Sequence[Json]) -> list[str]:
    """Failed rollouts by stage and reason, the most frequent first, with an example of each."""
    failures = [item["failure"] for item in items if item.get("failure")]
    examples = {(f["reason"], f["stage"]): f.get("message", "") for f in reversed(failures)}
    counts = Counter((f["reason"], f["stage"]) for f in failures)
    return [
        f"{count} x {reason} in {stage}: {shorten(examples[reason, stage], _EXAMPLE_WIDTH)}"
        for (reason, stage), count in counts.most_common()
    ]
