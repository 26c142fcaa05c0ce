"""Print the version."""

import typer


def version_command(ctx: typer.Context) -> None:
    """Print the version."""
    from importlib.metadata import version

    print(version("rollout-operator"))
