"""Which gateway and which state directory a command works with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rollout_client.cli.failure import INVALID, CliError
from rollout_crds.locations import StateDirectory, parse_server_url, state_dir

if TYPE_CHECKING:
    from rollout_client.cli.rest import Gateway

_WITH_VALUE = ("--server", "--state-dir")
_FLAGS = ("--debug",)


@dataclass(frozen=True)
class Settings:
    """The global options, with their defaults resolved."""

    server: str
    """URL of the gateway."""
    state_dir: Path
    named_server: bool
    """The server was named by an option or the environment, so it is not ours to start."""

    @classmethod
    def from_options(
        cls, env: Mapping[str, str], server: str | None, state: Path | None
    ) -> "Settings":
        """Resolve the defaults.

        Raises:
            CliError: The server's URL has no known form.
        """
        directory = state.absolute() if state else state_dir(env)
        named = server or (None if state else env.get("ROLLOUT_SERVER"))
        url = named or StateDirectory(directory).gateway_url
        try:
            parse_server_url(url)
        except ValueError as error:
            msg = f"--server: {error}"
            raise CliError(msg, INVALID) from error
        return cls(url, directory, named_server=bool(named))

    @property
    def logs_dir(self) -> Path:
        """Where the local node writes logs."""
        return StateDirectory(self.state_dir).logs

    def gateway(self, patience_seconds: float = 0.0) -> "Gateway":
        """A light client of the gateway; waits up to `patience_seconds` for an answer."""
        from rollout_client.cli.rest import Gateway

        return Gateway(self.server, patience_seconds)


def hoist_global_options(arguments: list[str]) -> list[str]:
    """Move the global options before the command, so that they may stand anywhere."""
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word in _FLAGS or word.startswith(tuple(f"{name}=" for name in _WITH_VALUE)):
            front.append(word)
        elif word in _WITH_VALUE:
            front += [word, *_next(words)]
        else:
            rest.append(word)
    return front + rest


def _next(words: Iterator[str]) -> list[str]:
    value = next(words, None)
    return [] if value is None else [value]
