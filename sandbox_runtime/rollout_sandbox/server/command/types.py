"""Messages of the command tool."""

from ..messages import Annotated, NamedTuple, positive


class CommandRequest(NamedTuple):
    """Run a bash script in a process of its own, apart from the persistent shell."""

    script: str
    cwd: str | None = None
    env: dict[str, str] = {}  # noqa: RUF012 - never changed
    timeout_seconds: Annotated[float | None, positive] = None


class CommandResult(NamedTuple):
    """What the script printed (both streams as they came) and how it ended."""

    output: str
    exit_code: int
    """128 + N when signal N ended it, which is 137 after a time-out."""
    timed_out: bool = False
    cut_bytes: int = 0
