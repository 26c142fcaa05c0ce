"""The processes of one sandbox: started from a description, watched, and ended without a trace."""

import asyncio
import os
import socket
from asyncio.subprocess import DEVNULL, STDOUT, Process
from contextlib import suppress
from pathlib import Path

from .errors import LimitExceeded, SandboxDied, SandboxError, StartFailed
from .owner import record_processes, recorded_processes
from .ports import Launch, Place
from .server.processes import descendants, kill_all, process_table
from .trees import remove_tree

# How long a backend may take to end by itself.
_GRACE_SECONDS = 5.0
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


class Inherited:
    """The descriptors that a server starts with; the host closes its copies afterwards."""

    def __init__(self, path: Path) -> None:
        self.listener = listen(path)
        self.lifeline_read, self._lifeline_write = os.pipe()

    def take_lifeline(self) -> int:
        """Return the end whose closing ends the server."""
        taken, self._lifeline_write = self._lifeline_write, -1
        return taken

    def close(self) -> None:
        """Close what was not taken."""
        self.listener.close()
        os.close(self.lifeline_read)
        if self._lifeline_write >= 0:
            os.close(self._lifeline_write)


class Instance:
    """A sandbox's outermost process and its directories."""

    def __init__(self, process: Process, place: Place, lifeline: int) -> None:
        self.place = place
        self._process = process
        self._lifeline = lifeline
        self._exceeded: str | None = None

    @classmethod
    async def spawn(cls, launch: Launch, place: Place, inherited: Inherited) -> "Instance":
        """Start the program; it gets the descriptors under the numbers they have here.

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
                    pass_fds=(inherited.listener.fileno(), inherited.lifeline_read),
                    start_new_session=True,
                )
            except OSError as error:
                message = f"{launch.argv[0]}: {error.strerror}; is it installed?"
                raise StartFailed(message) from error
        instance = cls(process, place, inherited.take_lifeline())
        instance.record()
        return instance

    def record(self) -> None:
        """Note all processes there are now, for the one who cleans up after a killed owner."""
        record_processes(self.place.root, self._family())

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

    def death(self, cause: SandboxDied | None = None) -> SandboxError:
        """Return the error of a sandbox that is gone: whose fault it is, and its last words."""
        if self._exceeded is not None:
            return LimitExceeded(self._exceeded)
        return SandboxDied(
            f"sandbox {self.place.root.name}: {cause or 'it has ended'}{self.last_words()}"
        )

    async def end_over(self, limit: str) -> None:
        """End the sandbox because the agent exceeded a limit."""
        self._exceeded = limit
        await self.kill()

    async def kill(self) -> None:
        """End all processes and wait until they are gone.

        The server ends when it is let go, and the backend's program then cleans up after itself. If
        it does not, or was killed, what is left of the family is killed.
        """
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _GRACE_SECONDS)
        while family := self._family():
            kill_all(family)
            await asyncio.sleep(0.01)
        await self._process.wait()

    def _family(self) -> set[int]:
        """Return the living processes of the sandbox, also those whose parents are gone."""
        outermost = self._process.pid
        table = [process for process in process_table() if process.state != "Z"]
        members = {p.pid for p in table if outermost in (p.pid, p.session)}
        return members | descendants(table, members) | set(recorded_processes(self.place.root))

    def remove(self) -> None:
        """Remove the directories."""
        remove_tree(self.place.root)
