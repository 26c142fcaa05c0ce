"""What the server is told at its start and says about itself."""

from .messages import Annotated, NamedTuple, positive


class ServerConfig(NamedTuple):
    """The server's only argument, as JSON."""

    socket_fd: int
    lifeline_fd: int
    """Read end of a pipe that the worker holds open: at its end the server ends."""
    workdir: str
    run_dir: str
    env: dict[str, str]
    action_seconds: Annotated[float, positive]
    output_bytes: Annotated[int, positive]
    transfer_bytes: Annotated[int, positive]
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None
    disk_bytes: int | None = None


class Health(NamedTuple):
    """Answer of `/v1/health`."""

    python: str
    bash: str
    rss_bytes: int


class ErrorBody(NamedTuple):
    """Body of every answer that is not 2xx."""

    error: str
    message: str
