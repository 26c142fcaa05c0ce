"""The processes of one sandbox: started from a description, watched, and ended without a trace."""

import asyncio
import os
import signal
import socket
from asyncio.subprocess import DEVNULL, STDOUT, Process
from contextlib import suppress
from pathlib import Path

from .errors import StartFailed
from .owner import record_processes
from .ports import Launch, Place
from .server.processes import group_and_descendants, kill_all, process_table
from .trees import remove_tree

_LAST_WORDS = 2000


def listen(path: Path) -> socket.socket:
    """Return a listening socket at `path`, however long its directory's name is."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
        listener.listen(64)
    except OSError:
        listener.close()
        raise
    finally:
        os.close(directory)
    return listener


class Instance:
    """A sandbox's outermost process and its directories."""

    def __init__(self, process: Process, place: Place) -> None:
        self.place = place
        self._process = process

    @classmethod
    async def spawn(cls, launch: Launch, place: Place, listener: socket.socket) -> "Instance":
        """Start the program with the listening socket inherited under its own number.

        Raises:
            StartFailed: the program can't be executed.
        """
        with place.log.open("wb") as log:
            try:
                process = await asyncio.create_subprocess_exec(
                    *launch.argv,
                    env=dict(launch.env),
                    stdin=DEVNULL,
                    stdout=log,
                    stderr=STDOUT,
                    cwd="/",
                    pass_fds=(listener.fileno(),),
                    start_new_session=True,
                )
            except OSError as error:
                message = f"{launch.argv[0]}: {error.strerror}; is it installed?"
                raise StartFailed(message) from error
        instance = cls(process, place)
        instance.record()
        return instance

    def record(self) -> None:
        """Note all processes there are now, for the one who cleans up after a killed owner."""
        family = group_and_descendants(process_table(), self._process.pid)
        record_processes(self.place.root, {self._process.pid, *family})

    @property
    def ended(self) -> bool:
        """Whether the outermost process is gone."""
        return self._process.returncode is not None

    async def wait(self) -> int:
        """Wait for the end; return the exit code."""
        return await self._process.wait()

    def last_words(self) -> str:
        """Return the end of the log and the exit code, to append to an error's text."""
        code = self._process.returncode
        ended = "" if code is None else f"; exit code {code}"
        try:
            text = self.place.log.read_text(errors="replace")[-_LAST_WORDS:].strip()
        except OSError:
            text = ""
        return f"{ended}: {text}" if text else ended

    async def kill(self) -> None:
        """End all processes and wait until they are gone.

        All are killed, not only the outermost: file system daemons do not end with it.
        """
        family = group_and_descendants(process_table(), self._process.pid)
        family.discard(self._process.pid)
        handles = [handle for pid in family if (handle := _open_process(pid)) is not None]
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGKILL)
        kill_all(family)
        await self._process.wait()
        try:
            for handle in handles:
                await _gone(handle)
        finally:
            for handle in handles:
                os.close(handle)

    def remove(self) -> None:
        """Remove the directories."""
        remove_tree(self.place.root)


def _open_process(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        return None


async def _gone(handle: int) -> None:
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(handle, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(handle)
