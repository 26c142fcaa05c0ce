"""How a command fails: lines for people, and an exit code."""

from collections.abc import Sequence

from rollout_client.errors import ClientError, GatewayError, Unavailable

FAILED = 1
INVALID = 2
INTERRUPTED = 130


class CliError(Exception):
    """A command cannot do what it was asked to.

    Args:
        lines: What is wrong, where, and what to do; each becomes an `error:` line.
        exit_code: 1 when something failed, 2 when the input is wrong.
    """

    def __init__(self, lines: str | Sequence[str], exit_code: int = FAILED) -> None:
        self.lines = (lines,) if isinstance(lines, str) else tuple(lines)
        self.exit_code = exit_code
        super().__init__("\n".join(self.lines))


def fail_lines(error: CliError | ClientError) -> list[str]:
    """What to print for an error."""
    if isinstance(error, CliError):
        return list(error.lines)
    if isinstance(error, Unavailable) and error.status == 0:
        return [f"{error.detail}; start one with `rolloutctl up`, or name another with --server"]
    if isinstance(error, GatewayError):
        return gateway_lines(error)
    return [str(error)]


def gateway_lines(error: GatewayError, subject: str = "") -> list[str]:
    """A refusal by the gateway, one line for each field."""
    prefix = f"{subject}: " if subject else ""
    if error.field_errors:
        return [f"{prefix}{e.field}: {e.message}" for e in error.field_errors]
    return [f"{prefix}{error.detail}"]
