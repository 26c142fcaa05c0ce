"""The rolloutctl command: resources of one machine or site from a shell.

Nothing heavy is imported before the command that needs it runs: short commands must feel instant.
"""

import sys
from collections.abc import Sequence

from rollout_client.cli.failure import INTERRUPTED

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    try:
        from rollout_client.cli.app import run

        code = run([*(sys.argv[1:] if arguments is None else arguments)])
    except KeyboardInterrupt:  # while modules were imported
        code = INTERRUPTED
    sys.exit(code)
