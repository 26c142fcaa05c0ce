"""One running sandbox, as its user sees it: the tools, the hand-over of its state, and the end."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from .client import SandboxClient
from .disk import tree_bytes
from .errors import SandboxDied
from .eviction import Lease
from .instance import Instance
from .layers import LayerStore
from .ports import Limits
from .server.bash.types import BashRequest, BashResult
from .server.command.types import CommandRequest, CommandResult
from .server.files.types import (
    ExportRequest,
    ImportRequest,
    Listing,
    ListRequest,
    ReadRequest,
    WriteRequest,
)
from .server.ipython.types import IPythonRequest, IPythonResult
from .server.messages import decode, encode
from .server.types import Health

M = TypeVar("M")

# The server ends a command that is out of time within some seconds; only then is it taken for dead.
_ANSWER_GRACE_SECONDS = 20.0
_KERNEL_START_SECONDS = 60.0
_FILE_SECONDS = 120.0


class Sandbox:
    """A started sandbox. Once it is gone, methods raise `SandboxDied` or `LimitExceeded`."""

    def __init__(
        self,
        instance: Instance,
        client: SandboxClient,
        limits: Limits,
        layers: LayerStore,
        lease: Lease,
    ) -> None:
        self._instance = instance
        self._client = client
        self._limits = limits
        self._layers = layers
        self._lease = lease

    @property
    def id(self) -> str:
        """Name of the sandbox's directory."""
        return self._instance.place.root.name

    @property
    def directory(self) -> Path:
        """The sandbox's directory on the host."""
        return self._instance.place.root

    async def bash(self, command: str, *, timeout_seconds: float | None = None) -> BashResult:
        """Run a command in the persistent shell."""
        request = BashRequest(command=command, timeout_seconds=timeout_seconds)
        seconds = self._patience(timeout_seconds)
        return await self._post("/v1/bash/run", request, BashResult, seconds)

    async def command(
        self,
        script: str,
        *,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        timeout_seconds: float | None = None,
    ) -> CommandResult:
        """Run a bash script in a process of its own, whose exit code comes from the kernel."""
        request = CommandRequest(
            script=script, cwd=cwd, env=env or {}, timeout_seconds=timeout_seconds
        )
        seconds = self._patience(timeout_seconds)
        return await self._post("/v1/command/run", request, CommandResult, seconds)

    async def ipython(self, code: str, *, timeout_seconds: float | None = None) -> IPythonResult:
        """Execute a cell in the persistent IPython kernel."""
        request = IPythonRequest(code=code, timeout_seconds=timeout_seconds)
        seconds = self._patience(timeout_seconds) + _KERNEL_START_SECONDS
        return await self._post("/v1/ipython/run", request, IPythonResult, seconds)

    async def read(self, path: str, *, max_bytes: int | None = None) -> bytes:
        """Return a file's content.

        Raises:
            PathNotFound: there is no such file.
            PathRefused: it is not a regular file, or may not be read.
            TooLarge: it holds more than `max_bytes` or the transfer limit.
        """
        return await self._call("/v1/files/read", ReadRequest(path, max_bytes), _FILE_SECONDS)

    async def write(
        self, path: str, content: bytes, *, mode: int = 0o644, parents: bool = True
    ) -> None:
        """Replace a file's content in one step.

        Raises:
            PathNotFound: the directory is missing and `parents` is false.
            PathRefused: permission is denied.
        """
        request = WriteRequest(path, mode, parents)
        await self._call("/v1/files/write", request, _FILE_SECONDS, content)

    async def list(self, path: str) -> Listing:
        """Return a directory's entries."""
        return await self._post("/v1/files/list", ListRequest(path), Listing, _FILE_SECONDS)

    async def export(self, paths: Sequence[str], *, max_bytes: int | None = None) -> bytes:
        """Return a tar of the paths. Its content is the agent's: only `import_` may unpack it.

        Raises:
            PathNotFound: a path does not exist.
            TooLarge: the content is over `max_bytes` or the transfer limit.
        """
        request = ExportRequest([*paths], max_bytes)
        return await self._call("/v1/files/export", request, _FILE_SECONDS)

    async def import_(self, archive: bytes, paths: Sequence[str]) -> None:
        """Unpack an export of `paths` inside the sandbox.

        Raises:
            PathRefused: a member lies outside `paths` or would be written through a symlink.
            InvalidRequest: the archive is damaged.
        """
        await self._call("/v1/files/import", ImportRequest([*paths]), _FILE_SECONDS, archive)

    async def health(self) -> Health:
        """Return the versions of what runs inside."""
        return decode(Health, await self._call("/v1/health", None, _FILE_SECONDS))

    async def commit(self) -> str:
        """End the sandbox and store what it changed as a layer; return the layer's digest."""
        await self._end()
        return await asyncio.to_thread(self._layers.commit, self._instance.place.upper)

    async def check_disk(self) -> None:
        """End the sandbox if it has written more than it may."""
        limit = self._limits.disk_bytes
        if limit is None or self._instance.ended:
            return
        place = self._instance.place
        used = await asyncio.to_thread(lambda: sum(map(tree_bytes, (place.upper, place.scratch))))
        if used > limit:
            written = f"sandbox {self.id}: {used >> 20} MiB written to disk"
            await self._instance.end_over(f"{written}, over the limit of {limit >> 20} MiB")

    async def stop(self) -> None:
        """End the sandbox and remove all that it left; again is harmless."""
        await self._end()
        self._lease.release()
        await asyncio.shield(asyncio.to_thread(self._instance.remove))

    async def _end(self) -> None:
        self._client.close()
        await asyncio.shield(self._instance.kill())

    def _patience(self, timeout_seconds: float | None) -> float:
        limit = self._limits.action_seconds
        return min(timeout_seconds or limit, limit) + _ANSWER_GRACE_SECONDS

    async def _post(self, path: str, request: object, kind: type[M], seconds: float) -> M:
        return decode(kind, await self._call(path, request, seconds))

    async def _call(
        self, path: str, request: object, seconds: float, content: bytes = b""
    ) -> bytes:
        if self._instance.ended:
            raise self._instance.death()
        try:
            return await self._client.request(
                path, encode(request), content, timeout_seconds=seconds
            )
        except SandboxDied as error:
            raise self._instance.death(error) from error
