"""HTTP/1.1 as far as the host's client speaks it: a method, a path, and bodies with a length.

A request's body is one line of JSON, its message; what follows the line is content (a file, a tar).
"""

import socket
from typing import NamedTuple

from .messages import encode
from .refusals import Code, Refusal
from .types import ErrorBody

_HEAD_BYTES = 64 * 1024
_MESSAGE_BYTES = 16 * 1024 * 1024
_STATUS: dict[Code, int] = {
    Code.PATH_NOT_FOUND: 404,
    Code.PATH_REFUSED: 403,
    Code.TOO_LARGE: 413,
    Code.INVALID_REQUEST: 422,
}


class Request(NamedTuple):
    """One request."""

    path: str
    message: bytes
    content: memoryview


class Connection:
    """One connection of the host; requests come one after another."""

    def __init__(self, peer: socket.socket, content_bytes: int) -> None:
        self._peer = peer
        self._limit = content_bytes + _MESSAGE_BYTES
        self._buffer = bytearray()

    def receive(self) -> Request:
        """Wait for the next request.

        Raises:
            EOFError: the host closed the connection.
            Refusal: the body is over the limit; the connection stays usable.
        """
        head = self._head()
        first, *rest = head.split(b"\r\n")
        body = self._body(_length(rest))
        end = body.find(b"\n")
        end = len(body) if end < 0 else end
        path = first.split(b" ")[1].decode(errors="replace")
        return Request(path, bytes(body[:end]), memoryview(body)[end + 1 :])

    def answer(self, result: object) -> None:
        """Send a message, raw bytes, or nothing (None)."""
        if isinstance(result, bytes):
            self._send(200, result)
        else:
            self._send(204 if result is None else 200, b"" if result is None else encode(result))

    def refuse(self, refusal: Refusal) -> None:
        """Send a refusal."""
        self._send(_STATUS[refusal.code], encode(ErrorBody(refusal.code.value, str(refusal))))

    def fail(self, text: str) -> None:
        """Say that the server itself failed."""
        self._send(500, text.encode(errors="replace"))

    def _send(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} .\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        if len(body) < 65536:
            self._peer.sendall(head + body)
        else:
            self._peer.sendall(head)
            self._peer.sendall(body)

    def _head(self) -> bytes:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _HEAD_BYTES:
                raise EOFError
            self._fill()
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        return head

    def _body(self, length: int) -> bytearray:
        if length > self._limit:
            self._skip(length)
            raise Refusal(Code.TOO_LARGE, f"the body holds more than {self._limit} bytes")
        body, self._buffer = self._buffer[:length], self._buffer[length:]
        while len(body) < length:
            if not (data := self._peer.recv(min(length - len(body), 1 << 20))):
                raise EOFError
            body += data
        return body

    def _skip(self, length: int) -> None:
        taken = min(length, len(self._buffer))
        del self._buffer[:taken]
        length -= taken
        while length:
            if not (data := self._peer.recv(min(length, 1 << 20))):
                raise EOFError
            length -= len(data)

    def _fill(self) -> None:
        if not (data := self._peer.recv(65536)):
            raise EOFError
        self._buffer += data


def _length(headers: list[bytes]) -> int:
    for line in headers:
        if line[:15].lower() == b"content-length:":
            return int(line[15:])
    return 0
