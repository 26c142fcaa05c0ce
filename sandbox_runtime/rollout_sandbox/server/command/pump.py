"""A pipe into an `OutputBuffer` that ends when its process does, not when its last writer does.

A daemon started by a command may hold the write end for ever. What a process wrote before it ended
is in the pipe by then, so reading on until the pipe is empty loses nothing.
"""

import os
import select
import threading
import time
from subprocess import Popen
from types import TracebackType

from ..output import OutputBuffer


class Pump:
    """Use as a context manager; leaving it takes what is still in the pipe."""

    def __init__(self, output: OutputBuffer) -> None:
        self._output = output
        self._read_end, self.write_end = os.pipe()
        os.set_blocking(self._read_end, False)

    def __enter__(self) -> "Pump":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        while self._read():
            continue
        os.close(self._read_end)
        if self.write_end >= 0:
            os.close(self.write_end)

    def until_ended(self, process: "Popen[bytes]", seconds: float) -> bool:
        """Take output until the process ends; return False when time is over first."""
        os.close(self.write_end)
        self.write_end = -1
        ended, ending = os.pipe()
        threading.Thread(target=_close_after, args=(process, ending), daemon=True).start()
        try:
            return self._until_readable(ended, seconds)
        finally:
            os.close(ended)

    def _until_readable(self, ended: int, seconds: float) -> bool:
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(self._read_end, select.POLLIN)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            ready = [descriptor for descriptor, _ in poll.poll(left * 1000)]
            if self._read_end in ready and not self._read():
                poll.unregister(self._read_end)
            if ended in ready:
                return True
        return False

    def _read(self) -> bool:
        try:
            data = os.read(self._read_end, 65536)
        except BlockingIOError:
            return False
        self._output.feed(data)
        return bool(data)


def _close_after(process: "Popen[bytes]", ending: int) -> None:
    process.wait()
    os.close(ending)
