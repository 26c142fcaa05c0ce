"""Suspend and resume jobs."""

import typer

from rollout_client.cli.kinds import JOB
from rollout_client.cli.options import JobArgument, Namespace, settings_of


def suspend_command(ctx: typer.Context, job: JobArgument, namespace: Namespace = "default") -> None:
    """Give no new work of a job to workers; work in progress is handed back."""
    _set_suspended(ctx, job, namespace, True)
    print(f"RolloutJob/{job} suspended")


def resume_command(ctx: typer.Context, job: JobArgument, namespace: Namespace = "default") -> None:
    """Go on with a suspended job."""
    _set_suspended(ctx, job, namespace, False)
    print(f"RolloutJob/{job} resumed")


def _set_suspended(ctx: typer.Context, job: str, namespace: str, suspended: bool) -> None:
    gateway = settings_of(ctx).gateway()
    query = {"namespace": namespace}
    item = gateway.get(JOB.path(job), query)
    body = {key: item[key] for key in ("apiVersion", "kind", "metadata")}
    gateway.put(JOB.path(job), query, {**body, "spec": {**item["spec"], "suspended": suspended}})
