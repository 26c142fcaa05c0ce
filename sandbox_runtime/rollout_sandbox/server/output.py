r"""Keeps the head and the tail of an output of any size in bounded memory.

>>> buffer = OutputBuffer(limit=8)
>>> buffer.feed(b"0123456789abcdef")
>>> buffer.text()
'0123\n[... 8 bytes cut ...]\ncdef'
"""


class OutputBuffer:
    """Collects bytes; holds at most `limit` of them plus one chunk."""

    def __init__(self, limit: int) -> None:
        self._head_limit = limit // 2
        self._tail_limit = limit - limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def cut_bytes(self) -> int:
        """How many bytes in the middle are not shown."""
        return max(0, self.total - self._head_limit - self._tail_limit)

    def feed(self, data: bytes) -> None:
        """Append `data`."""
        self.total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def text(self) -> str:
        """Return what was kept as text, with a note on what was cut."""
        if not self.cut_bytes:
            return bytes(self._head + self._tail).decode(errors="replace")
        head = trim_end(bytes(self._head))
        tail = trim_start(bytes(self._tail[-self._tail_limit :]))
        cut = self.total - len(head) - len(tail)
        note = f"\n[... {cut} bytes cut ...]\n"
        return head.decode(errors="replace") + note + tail.decode(errors="replace")


def trim_end(data: bytes) -> bytes:
    """Drop a UTF-8 character that is incomplete at the end.

    >>> trim_end("aé".encode()[:-1])
    b'a'
    """
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        width = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        return data if width <= back else data[:-back]
    return data


def trim_start(data: bytes) -> bytes:
    """Drop the rest of a UTF-8 character at the start.

    >>> trim_start("éa".encode()[1:])
    b'a'
    """
    skip = 0
    while skip < min(3, len(data)) and data[skip] & 0xC0 == 0x80:
        skip += 1
    return data[skip:]
