"""The command line: which commands there are, global options, and how errors end.

Exit codes: 0 done, 1 failed, 2 wrong usage or invalid input, 130 interrupted.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rollout_client.cli.failure import INTERRUPTED, CliError, fail_lines
from rollout_client.cli.settings import Settings, hoist_global_options
from rollout_client.errors import ClientError

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Run a manifest's job from start to end, with live progress"),
    "up": ("cluster", "Start gateway, operator and node on this machine"),
    "down": ("cluster", "Stop what `up` started"),
    "apply": ("apply", "Create or change the resources of a manifest"),
    "get": ("get", "List resources, or show one"),
    "describe": ("describe", "Show one resource with its conditions, progress and events"),
    "wait": ("wait", "Wait for a condition of a resource, or for its deletion"),
    "logs": ("logs", "Print what the processes of a pod, job or pool have logged"),
    "delete": ("delete", "Delete resources"),
    "rollouts": ("rollouts", "List the rollouts of a job"),
    "trajectories": ("trajectories", "Read the finished rollouts of a job"),
    "suspend": ("suspend", "Give no new work of a job to workers"),
    "resume": ("suspend", "Go on with a suspended job"),
    "doctor": ("doctor", "Check what this machine has, and say how to get what is missing"),
    "version": ("version", "Print the version"),
}
"""Each command's module and one line of help, so that neither needs an import to be listed."""


class LazyGroup(TyperGroup):
    """A group that imports the module of a command when the command is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the help text."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and build one command."""
        if cmd_name not in COMMANDS:
            return None
        module, help_text = COMMANDS[cmd_name]
        function = getattr(import_module(f"rollout_client.cli.{module}"), f"{cmd_name}_command")
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(cmd_name, help=function.__doc__ or help_text)(function)
        return typer.main.get_command(one)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command, or name the nearest one."""
        names: Any = dict.fromkeys(COMMANDS)
        self.commands = names
        return super().resolve_command(ctx, args)


app = typer.Typer(
    cls=LazyGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def options(
    ctx: typer.Context,
    server: Annotated[
        str | None, typer.Option(help="URL of the gateway; default $ROLLOUT_SERVER, else `up`'s")
    ] = None,
    state_dir: Annotated[
        Path | None, typer.Option(help="State directory; default $ROLLOUT_STATE_DIR")
    ] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks")] = False,
) -> None:
    """Rollouts of LLM agents for reinforcement learning, declared as resources."""
    ctx.obj = Settings.from_options(os.environ, server, state_dir)


def run(arguments: list[str]) -> int:
    """Run the command line and return the exit code; every error is printed as `error: ...`."""
    debug = "--debug" in arguments
    try:
        result = app(
            hoist_global_options(arguments) or ["--help"],
            prog_name="rolloutctl",
            standalone_mode=False,
        )
    except (CliError, ClientError) as error:
        return _report(fail_lines(error), getattr(error, "exit_code", 1), error if debug else None)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - for the flush at exit
        return 1
    except Exception as error:
        return _unexpected(error, debug)
    return result if isinstance(result, int) else 0


def _unexpected(error: Exception, debug: bool) -> int:
    usage = getattr(error, "format_message", None)
    if usage is not None:  # of the command line library
        return _report([f"{usage()} (see `rolloutctl --help`)"], 2, None)
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    hint = "" if debug else "; run it again with --debug for the details"
    text = f"{type(error).__name__}: {error} (a defect of rolloutctl{hint})"
    return _report([text], 1, error if debug else None)


def _report(lines: Sequence[str], exit_code: int, error: BaseException | None) -> int:
    if error is not None:
        import traceback

        traceback.print_exception(error)
    for line in lines:
        print(f"error: {line}", file=sys.stderr)
    return exit_code
