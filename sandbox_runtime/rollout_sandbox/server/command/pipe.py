"""A pipe into an `OutputBuffer` that ends when its owner says so, not when its last writer does.

A daemon started by a command may hold the write end for ever. What a process wrote before it ended
is in the pipe by then, so reading on until the pipe is empty loses nothing.
"""

import asyncio
import os
from types import TracebackType

from ..output import OutputBuffer


class Pipe:
    """Use as a context manager; leaving it takes what is still in the pipe."""

    def __init__(self, output: OutputBuffer) -> None:
        self._output = output
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)
        self._writable = True

    def close_write_end(self) -> None:
        """Close our copy once the writer has its own."""
        if self._writable:
            os.close(self.write_end)
            self._writable = False

    def __enter__(self) -> "Pipe":
        asyncio.get_running_loop().add_reader(self._read_end, self._read)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close_write_end()
        while self._read():
            continue
        asyncio.get_running_loop().remove_reader(self._read_end)
        os.close(self._read_end)

    def _read(self) -> bool:
        try:
            data = os.read(self._read_end, 65536)
        except BlockingIOError:
            return False
        if not data:
            asyncio.get_running_loop().remove_reader(self._read_end)
        self._output.feed(data)
        return bool(data)
