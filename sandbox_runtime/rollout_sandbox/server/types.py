"""What the server is told at its start and says about itself."""

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """Base of all messages: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ServerConfig(Strict):
    """The server's only argument, as JSON."""

    socket_fd: int
    lifeline_fd: int
    """Read end of a pipe that the worker holds open: at its end the server ends."""
    workdir: str
    run_dir: str
    env: dict[str, str]
    action_seconds: float = Field(gt=0)
    output_bytes: int = Field(gt=0)
    transfer_bytes: int = Field(gt=0)
    memory_bytes: int | None = None
    processes: int | None = None
    open_files: int | None = None


class Health(Strict):
    """Answer of `GET /v1/health`."""

    python: str
    bash: str
    ipykernel: str
    rss_bytes: int


class ErrorBody(Strict):
    """Body of every answer that is not 2xx."""

    error: str
    message: str
