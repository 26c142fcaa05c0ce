"""The one place that knows ptyprocess: a program on a pseudo-terminal with raw output."""

import os
import signal
import termios
from contextlib import suppress

from ptyprocess import PtyProcess


class Pty:
    """A program leading a session of its own on a terminal without echo and output translation."""

    def __init__(self, argv: list[str], cwd: str, env: dict[str, str]) -> None:
        self._process = PtyProcess.spawn(argv, cwd=cwd, env=env, echo=False, dimensions=(50, 160))
        self.pid: int = self._process.pid
        self.fd: int = self._process.fd
        os.set_blocking(self.fd, False)
        self._attributes = _plain(termios.tcgetattr(self.fd))
        self.reset_modes()

    def reset_modes(self) -> None:
        """Undo what a program did to the terminal."""
        termios.tcsetattr(self.fd, termios.TCSANOW, self._attributes)

    def read(self) -> bytes | None:
        """Return what is there (`b""`: nothing now), or None once the program is gone."""
        try:
            return os.read(self.fd, 65536) or None
        except BlockingIOError:
            return b""
        except OSError:
            return None

    def write(self, line: bytes) -> None:
        """Type a line, which must be shorter than a terminal's 4,095 bytes."""
        os.write(self.fd, line)

    def foreground_group(self) -> int:
        """Return the process group that the terminal belongs to now."""
        return os.tcgetpgrp(self.fd)

    def poll(self) -> int | None:
        """Return the status as a shell would show it, or None while the program runs."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        if pid == 0:
            return None
        code = os.waitstatus_to_exitcode(status)
        return 128 - code if code < 0 else code

    def kill(self) -> None:
        """Kill the program; `poll` must still be asked for its status."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Give the terminal back; ptyprocess' file owns the descriptor and would close it again."""
        self._process.fileobj.close()
        self._process.closed = True


def _plain(attributes: list[int | list[bytes | int]]) -> list[int | list[bytes | int]]:
    output, local = attributes[1], attributes[3]
    assert isinstance(output, int)  # noqa: S101 - narrows termios' loose type
    assert isinstance(local, int)  # noqa: S101
    attributes[1] = output & ~termios.OPOST
    attributes[3] = (local | termios.ICANON | termios.ISIG) & ~termios.ECHO
    return attributes
