"""Read the finished rollouts of a job as JSON lines, training sequences or a table."""

import sys
from collections.abc import Iterator
from contextlib import nullcontext
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TextIO

import typer

from rollout_client.cli.options import JobArgument, Namespace, settings_of
from rollout_client.cli.rest import Gateway

PAGE_SIZE = 100
LONG_POLL_SECONDS = 20.0
RESTART_PATIENCE_SECONDS = 60.0


class RecordOutput(StrEnum):
    """Forms of `trajectories`."""

    JSONL = "jsonl"
    SEGMENTS = "segments"
    TABLE = "table"


def trajectories_command(
    ctx: typer.Context,
    job: JobArgument,
    form: Annotated[
        RecordOutput, typer.Option("-o", help="Form of the output")
    ] = RecordOutput.JSONL,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the job has finished")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--output", help="Write to this file instead of the terminal")
    ] = None,
    namespace: Namespace = "default",
) -> None:
    """Read the finished rollouts of a job.

    jsonl: one record a line; segments: one training sequence a line; table: one rollout a row.
    """
    gateway = settings_of(ctx).gateway(RESTART_PATIENCE_SECONDS if follow else 0.0)
    records = record_lines(gateway, job, namespace, follow=follow)
    with file.open("w") if file else nullcontext(sys.stdout) as stream:
        if form is RecordOutput.TABLE:
            _print_table(records, stream)
        else:
            _print_lines(records, form, stream)


def record_lines(gateway: Gateway, job: str, namespace: str, *, follow: bool) -> Iterator[str]:
    """The records of a job as JSON, in the order in which they finished."""
    import json

    cursor = 0
    hold = LONG_POLL_SECONDS if follow else 0.0
    while True:
        query = {"namespace": namespace, "cursor": cursor, "limit": PAGE_SIZE, "wait_seconds": hold}
        path = f"/v1/rolloutjobs/{job}/trajectories"
        body = gateway.request("GET", path, query, hold_seconds=hold)
        *lines, last = body.decode().rstrip("\n").split("\n")
        yield from lines
        end = json.loads(last)
        cursor = end["cursor"]
        if len(lines) < PAGE_SIZE and (end["complete"] or not follow):
            return


def _print_lines(records: Iterator[str], form: RecordOutput, stream: TextIO) -> None:
    for line in records:
        lines = segment_lines(line) if form is RecordOutput.SEGMENTS else [line]
        for text in lines:
            stream.write(f"{text}\n")
        stream.flush()


def segment_lines(line: str) -> Iterator[str]:
    """The training sequences of a record, each as JSON with the rollout it belongs to."""
    import json

    from rollout_crds.result import RolloutRecord
    from rollout_crds.trajectory import segments

    record = RolloutRecord.model_validate_json(line)
    origin = record.model_dump(
        mode="json",
        include={"task_id", "rollout_id", "sample_index", "outcome", "trainable", "reward"},
    )
    for segment in segments(record.trajectory.calls) if record.trajectory else ():
        yield json.dumps({**origin, **segment.model_dump(mode="json")})


def _print_table(records: Iterator[str], stream: TextIO) -> None:
    from rollout_client.cli.rollouts import record_summary, rollouts_table
    from rollout_crds.result import RolloutRecord

    models = (RolloutRecord.model_validate_json(line) for line in records)
    stream.write(f"{rollouts_table([record_summary(model) for model in models])}\n")
