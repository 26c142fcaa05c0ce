"""Shows a running job: bars that redraw themselves on a terminal, a line now and then elsewhere."""

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from rollout_client.cli.progress import View, rate_text, stage_text, status_line
from rollout_client.cli.tables import duration

if TYPE_CHECKING:
    from rich.console import RenderableType

    from rollout_crds.progress import StageCounters

_LINE_SECONDS = 5.0
_REPEAT_SECONDS = 60.0
_BAR_WIDTH = 30


class Display(Protocol):
    """Where a running job is shown."""

    def __enter__(self) -> Self:
        """Begin to show."""
        ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Show nothing further."""

    def update(self, view: View) -> None:
        """Show the newest state."""

    def note(self, text: str) -> None:
        """Print a line that stays."""


def open_display() -> Display:
    """The display that fits standard output."""
    return LiveDisplay() if sys.stdout.isatty() else LineDisplay()


class LineDisplay:
    """A status line every few seconds, when something has changed."""

    def __init__(self) -> None:
        self._printed_at = -_REPEAT_SECONDS
        self._key = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Nothing to end."""

    def update(self, view: View) -> None:
        """Print the status when it is new, or has not been printed for a while."""
        now = time.monotonic()
        key = view.progress.model_dump_json() + view.waiting
        due = _LINE_SECONDS if key != self._key else _REPEAT_SECONDS
        if now - self._printed_at >= due:
            print(status_line(view), flush=True)
            self._printed_at, self._key = now, key

    def note(self, text: str) -> None:
        """Print a line."""
        print(text, flush=True)


class LiveDisplay:
    """Bars of the three stages that redraw themselves."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(), refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._live.__exit__(exc_type, exc, traceback)

    def update(self, view: View) -> None:
        """Redraw."""
        self._live.update(rendered(view))

    def note(self, text: str) -> None:
        """Print a line above the bars."""
        self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)


def rendered(view: View) -> "RenderableType":
    """Bars for the stages, and a line each for the whole and for what is waited for."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    progress = view.progress
    grid = Table.grid(padding=(0, 2))
    stages = progress.stages
    for name, counters in (("init", stages.init), ("run", stages.run), ("eval", stages.eval)):
        total = progress.groups if name == "init" else progress.rollouts
        grid.add_row(name, _bar(counters, total), stage_text(counters))
    outcomes = progress.outcomes
    head = (
        f"{view.job}  {duration(view.elapsed_seconds)}  "
        f"finished {progress.finished}/{progress.rollouts}  scored {outcomes.scored}  "
        f"{rate_text(view)}"
    )
    lines: list[RenderableType] = [Text(head, style="bold"), grid]
    if view.waiting:
        lines.append(Text(f"waiting for {view.waiting}", style="yellow"))
    return Group(*lines)


def _bar(counters: "StageCounters", total: int) -> "RenderableType":
    from rich.progress_bar import ProgressBar

    ended = counters.done + counters.failed + counters.cancelled
    return ProgressBar(total=max(total, 1), completed=ended, width=_BAR_WIDTH)
