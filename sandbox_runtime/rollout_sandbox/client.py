"""A small asyncio HTTP/1.1 client for one sandbox's Unix socket.

It speaks only to our own server (bodies with a length, JSON errors), keeps connections open, and is
several times faster than a general client: the path of each tool call.
"""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

from .errors import TOOL_ERRORS, SandboxDied, SandboxError
from .server.messages import decode
from .server.types import ErrorBody

_HEADER_LIMIT = 64 * 1024


@dataclass(frozen=True)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter


class SandboxClient:
    """Requests to one sandbox; any number at once, each on a connection of its own."""

    def __init__(self, socket: Path) -> None:
        self._directory = os.open(socket.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        # Through the descriptor the name is short whatever the directory's path.
        self._address = f"/proc/self/fd/{self._directory}/{socket.name}"
        self._idle: list[_Connection] = []

    async def request(
        self, path: str, message: bytes = b"", content: bytes = b"", *, timeout_seconds: float
    ) -> bytes:
        """Send a message, and content after it, and return the body of the answer.

        Raises:
            ToolError: the server refused the request.
            SandboxDied: the connection broke, or no answer came in time.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                status, answer = await self._exchange(path, message, content)
        except TimeoutError as error:
            problem = f"{path}: the server did not answer in {timeout_seconds:g} s"
            raise SandboxDied(problem) from error
        except (OSError, EOFError) as error:
            problem = f"{path}: the connection to the server broke: {error!r}"
            raise SandboxDied(problem) from error
        if status >= 300:
            raise error_of(status, answer)
        return answer

    def close(self) -> None:
        """Close all idle connections."""
        for connection in self._idle:
            connection.writer.close()
        self._idle.clear()
        if self._directory >= 0:
            os.close(self._directory)
            self._directory = -1

    async def _exchange(self, path: str, message: bytes, content: bytes) -> tuple[int, bytes]:
        connection = self._idle.pop() if self._idle else await self._connect()
        done = False
        try:
            length = len(message) + 1 + len(content)
            connection.writer.write(request_head(path, length) + message + b"\n")
            connection.writer.write(content)
            await connection.writer.drain()
            answer = await _read_answer(connection.reader)
            done = True
            return answer
        finally:
            if done and self._directory >= 0:
                self._idle.append(connection)
            else:
                connection.writer.close()

    async def _connect(self) -> _Connection:
        return _Connection(*await asyncio.open_unix_connection(self._address, limit=_HEADER_LIMIT))


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status, length = parse_head(head)
    return status, await reader.readexactly(length)


def request_head(path: str, length: int) -> bytes:
    """Return the head of a request."""
    lines = (f"POST {path} HTTP/1.1", "host: sandbox", f"content-length: {length}", "", "")
    return "\r\n".join(lines).encode()


def parse_head(head: bytes) -> tuple[int, int]:
    r"""Return status and body length of an answer's head.

    >>> parse_head(b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")
    (204, 0)
    """
    first, *rest = head.split(b"\r\n")
    for line in rest:
        if line[:15].lower() == b"content-length:":
            return int(first.split(b" ", 2)[1]), int(line[15:])
    return int(first.split(b" ", 2)[1]), 0


def error_of(status: int, body: bytes) -> SandboxError:
    """Return the error that an answer stands for."""
    try:
        parsed = decode(ErrorBody, body)
        return TOOL_ERRORS[parsed.error](printable(parsed.message))
    except (ValueError, KeyError):
        text = printable(body[:256].decode(errors="replace"))
        return SandboxDied(f"the server failed with status {status}: {text}")


def printable(text: str) -> str:
    r"""Return text that names of an agent's files went into, fit for a log and a terminal.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\nb'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else repr(c)[1:-1] for c in text)
