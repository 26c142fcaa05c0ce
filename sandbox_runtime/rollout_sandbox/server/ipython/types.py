"""Messages of the IPython tool."""

from typing import Literal

from pydantic import Field

from ..types import Strict


class IPythonRequest(Strict):
    """Execute one cell."""

    code: str
    timeout_seconds: float | None = Field(default=None, gt=0)


class IPythonResult(Strict):
    """What the cell printed, returned or raised."""

    status: Literal["ok", "error", "timed_out", "died"]
    output: str
    """Streams, the result's and displays' text and the traceback, in the order they came."""
    error_name: str | None = None
    images: list[str] = Field(default_factory=list[str])
    """PNGs in base64, within the output limit; further ones are noted in `output`."""
    cut_bytes: int = 0
    kernel_restarted: bool = False
    """Variables are lost: the cell ended the kernel, or it could not be interrupted."""
