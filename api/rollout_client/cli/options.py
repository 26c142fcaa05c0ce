"""Arguments and options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

from rollout_client.cli.settings import Settings

KindArgument = Annotated[
    str, typer.Argument(metavar="KIND", help="rolloutjobs|rj, llmpools|llmp, ...; or KIND/NAME")
]
NameArgument = Annotated[str | None, typer.Argument(metavar="NAME")]
JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="Name of a RolloutJob")]
Namespace = Annotated[str, typer.Option("--namespace", "-n")]
Files = Annotated[list[str], typer.Option("--filename", "-f", help="A manifest; `-` for stdin")]


class ResourceOutput(StrEnum):
    """Forms of `get`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def settings_of(ctx: typer.Context) -> Settings:
    """The global options of this call."""
    settings = ctx.obj
    assert isinstance(settings, Settings)  # noqa: S101 - set by the callback of the app
    return settings
