"""The `run` command: checks first, then one run of the manifest's job."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rollout_client.cli.options import Files, settings_of
from rollout_crds.locations import cache_dir, images_dir, models_dir

if TYPE_CHECKING:
    from rollout_client.cli.sources import Source


def run_command(
    ctx: typer.Context,
    filename: Files,
    output: Annotated[
        Path | None, typer.Option(help="JSONL file of the records; default JOB.trajectories.jsonl")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Delete a job of that name first, with its records")
    ] = False,
) -> None:
    """Run a manifest's job from start to end, with live progress, into a JSONL file.

    Uses what `rolloutctl up` started, or starts the same for the time of the run. A job of that
    name with the same spec is resumed. The first Ctrl-C cancels the job and keeps what has
    finished; the second leaves at once.
    """
    from rollout_client.cli.apply import print_warnings
    from rollout_client.cli.job_run import JobRun, the_job
    from rollout_client.cli.sources import check_task_files, load_sources

    settings = settings_of(ctx)
    sources = load_sources(filename)
    job = the_job(sources)
    print_warnings(check_task_files(sources))
    if not settings.named_server:
        _require_pieces(sources)
    path = output or Path(f"{job.metadata.name}.trajectories.jsonl")
    run = JobRun(settings, sources, job, path, replace=replace)
    raise typer.Exit(asyncio.run(run.execute()))


def _require_pieces(sources: list["Source"]) -> None:
    from rollout_client.cli.failure import CliError
    from rollout_client.cli.preflight import Machine, preflight

    env = os.environ
    machine = Machine(images_dir(env), models_dir(env), cache_dir(env) / "bin")
    if problems := preflight(sources, machine):
        raise CliError(problems)
