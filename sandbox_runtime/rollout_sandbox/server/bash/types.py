"""Messages of the bash tool."""

from pydantic import Field

from ..types import Strict


class BashRequest(Strict):
    """Run one command, of any number of lines, in the persistent shell."""

    command: str
    timeout_seconds: float | None = Field(default=None, gt=0)


class BashResult(Strict):
    """What the command printed and how it ended."""

    output: str
    exit_code: int | None
    """None where the shell had to be replaced before it could tell."""
    timed_out: bool = False
    cut_bytes: int = 0
    shell_restarted: bool = False
    """The command ended or replaced the shell: directory, variables and jobs are lost."""
