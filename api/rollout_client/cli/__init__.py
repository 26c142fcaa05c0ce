"""The rolloutctl command: resources of one machine or site from a shell.

Nothing heavy is imported before the command that needs it runs: short commands must feel instant.
"""

from rollout_client.cli.app import main

__all__ = ["main"]
