"""Turns a kernel's messages into text and images."""

import re
from collections.abc import Mapping
from typing import Any

from ..output import OutputBuffer

_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


class Rendering:
    """Collects the output of one cell."""

    def __init__(self, limit: int) -> None:
        self.output = OutputBuffer(limit)
        self.images: list[str] = []
        self.error_name: str | None = None
        self._image_room = limit * 16

    def add(self, kind: str, content: Mapping[str, Any]) -> None:
        """Take one message of the kernel's output channel."""
        if kind == "stream":
            self._text(str(content["text"]))
        elif kind in ("execute_result", "display_data"):
            self._display(content["data"])
        elif kind == "error":
            self.error_name = str(content["ename"])
            self._text("\n".join(content["traceback"]) + "\n")

    def _display(self, data: Mapping[str, str]) -> None:
        image = data.get("image/png")
        if image is not None and len(image) <= self._image_room:
            self._image_room -= len(image)
            self.images.append(image)
            return
        if image is not None:
            self._text("[an image was left out: it is over the output limit]\n")
        text = data.get("text/plain", "")
        self._text(text if text.endswith("\n") else text + "\n")

    def _text(self, text: str) -> None:
        self.output.feed(_ANSI.sub("", text).encode(errors="replace"))
