"""Messages of the bash tool."""

from ..messages import Annotated, NamedTuple, positive


class BashRequest(NamedTuple):
    """Run one command, of any number of lines, in the persistent shell."""

    command: str
    timeout_seconds: Annotated[float | None, positive] = None


class BashResult(NamedTuple):
    """What the command printed and how it ended."""

    output: str
    exit_code: int | None
    """None where the shell had to be replaced before it could tell."""
    timed_out: bool = False
    cut_bytes: int = 0
    shell_restarted: bool = False
    """The command ended or replaced the shell: directory, variables and jobs are lost."""
    background: str = ""
    """What jobs in the background printed since the last command, and the shell's notes on them."""


class BashRestart(NamedTuple):
    """Throw the shell away; the next command starts a new one."""
