"""Messages of the IPython tool."""

from typing import Literal

from ..messages import Annotated, NamedTuple, positive


class IPythonRequest(NamedTuple):
    """Execute one cell."""

    code: str
    timeout_seconds: Annotated[float | None, positive] = None


class IPythonResult(NamedTuple):
    """What the cell printed, returned or raised."""

    status: Literal["ok", "error", "timed_out", "died"]
    output: str
    """Streams, the result's and displays' text and the traceback, in the order they came."""
    error_name: str | None
    images: list[str]
    """PNGs in base64, within the output limit; further ones are noted in `output`."""
    cut_bytes: int = 0
    kernel_restarted: bool = False
    """Variables are lost: the cell ended the kernel, or it could not be interrupted."""


class IPythonRestart(NamedTuple):
    """Throw the kernel away; the next cell starts a new one."""
