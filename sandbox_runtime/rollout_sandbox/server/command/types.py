"""Messages of the command tool."""

from pydantic import Field

from ..types import Strict


class CommandRequest(Strict):
    """Run a bash script in a process of its own, apart from the persistent shell."""

    script: str
    cwd: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    timeout_seconds: float | None = Field(default=None, gt=0)


class CommandResult(Strict):
    """What the script printed (both streams as they came) and how it ended."""

    output: str
    exit_code: int
    """128 + N when signal N ended it, which is 137 after a time-out."""
    timed_out: bool = False
    cut_bytes: int = 0
