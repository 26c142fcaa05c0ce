"""Print the logs of the processes that the local node runs."""

import re
import sys
import time
from collections import deque
from pathlib import Path
from typing import Annotated

import typer

from rollout_client.cli.failure import CliError
from rollout_client.cli.options import settings_of

_POLL_SECONDS = 0.3


def logs_command(
    ctx: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A pod, or a job or pool for all of its pods")
    ],
    stage: Annotated[str | None, typer.Option(help="Only this stage: init, run or eval")] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f")] = False,
    tail: Annotated[int, typer.Option(min=0, help="Only so many last lines of each log")] = 1000,
) -> None:
    """Print what the processes of a pod, job or pool have logged."""
    directory = settings_of(ctx).logs_dir
    available = sorted(path.stem for path in directory.glob("*.log"))
    pods = select_pods(available, name.rpartition("/")[2], stage)
    if not pods:
        known = ", ".join(available) or "none"
        msg = f"no log of {name!r} in {directory}; there are: {known}"
        raise CliError(msg)
    readers = [LogReader(directory / f"{pod}.log", pod if len(pods) > 1 else "") for pod in pods]
    for reader in readers:
        reader.print_last(tail)
    while follow:
        time.sleep(_POLL_SECONDS)
        for reader in readers:
            reader.print_new()


def select_pods(available: list[str], name: str, stage: str | None) -> list[str]:
    """The pods that a name stands for: itself, or the pods of the job or pool of that name."""
    if name in available and stage is None:
        return [name]
    of_stage = f"(pool-)?{re.escape(stage)}" if stage else "(pool-)?(init|run|eval)|engine"
    pattern = re.compile(f"{re.escape(name)}-({of_stage})-[0-9]+")
    return [pod for pod in available if pattern.fullmatch(pod)]


class LogReader:
    """Reads one log onwards, across its rotation."""

    def __init__(self, path: Path, prefix: str) -> None:
        self._path = path
        self._prefix = f"[{prefix}] " if prefix else ""
        self._offset = 0

    def print_last(self, count: int) -> None:
        """Print the last lines."""
        with self._path.open("rb") as file:
            lines = deque(file, maxlen=count)
            self._offset = file.tell()
        self._print(lines)

    def print_new(self) -> None:
        """Print the whole lines that came since."""
        if not self._path.exists():
            return
        if self._path.stat().st_size < self._offset:
            self._offset = 0
        with self._path.open("rb") as file:
            file.seek(self._offset)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._offset += len(whole)
        self._print(deque(whole.splitlines(keepends=True)))

    def _print(self, lines: deque[bytes]) -> None:
        for line in lines:
            sys.stdout.write(f"{self._prefix}{line.decode(errors='replace').rstrip()}\n")
        sys.stdout.flush()
