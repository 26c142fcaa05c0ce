"""Finds one command's output in the byte stream of a terminal.

Each command gets a nonce. The shell prints a begin mark with it, runs the command, prints an end
mark with the exit status. Text outside the marks (prompts, job notices) is dropped. The line sent
to the shell holds the nonce in two halves, so a shell that echoes or traces it forges no mark.

The end mark is printed by the same line, so that no program can read it away as its input; or else
at the next prompt, since an error may make the shell drop the rest of the line.
"""

import re
from typing import NamedTuple

from ..output import OutputBuffer

SETUP = b" PS1= PS2=; unset HISTFILE PROMPT_COMMAND; __rollout_status() { return $1; }\n"


_ANY_END = re.compile("\x1e[0-9a-f]{32}\x1e[0-9]{1,3}\x1e")


class Frame(NamedTuple):
    """The marks of one command."""

    nonce: str

    @property
    def begin(self) -> bytes:
        """What the shell prints before the command runs."""
        return f"\x1e{self.nonce}\x1e<".encode()

    def end_line(self) -> bytes:
        """Return the input that makes the shell print the end mark with the last status."""
        return f" {self._print_end()}\n".encode()

    def run_line(self, script: str, last_status: int) -> bytes:
        """Return the input that runs the text of the file `script` between the marks."""
        first, second = self._halves()
        start = (
            f"IFS= builtin read -rd '' __rollout_command <'{script}' || :; "
            f"builtin printf '\\036%s%s\\036<' {first} {second} >/dev/tty; "
            f'PROMPT_COMMAND="{self._print_end(escaped=True)}"; '
            f"__rollout_status {last_status}"
        )
        run = 'builtin eval "$__rollout_command"'
        end = f"{self._print_end()}; PROMPT_COMMAND="
        return f" {{ {start}; }} 2>/dev/null; {run}; {end}\n".encode()

    def _print_end(self, *, escaped: bool = False) -> str:
        first, second = self._halves()
        status = "\\$?" if escaped else "$?"
        mark = f"builtin printf '\\036%s%s\\036%d\\036' {first} {second} {status}"
        return f"{{ {mark} >/dev/tty; }} 2>/dev/null"

    def _halves(self) -> tuple[str, str]:
        middle = len(self.nonce) // 2
        return self.nonce[:middle], self.nonce[middle:]


def without_marks(text: str) -> str:
    """Return what was printed between two commands without the marks of the first."""
    return _ANY_END.sub("", text)


class Scanner:
    """Takes the stream in pieces of any size and keeps what lies between the marks of one frame."""

    def __init__(self, frame: Frame, output: OutputBuffer) -> None:
        self._begin = frame.begin
        self._mark = f"\x1e{frame.nonce}\x1e".encode()
        self._longest_end = len(frame.nonce) + 6
        self._output = output
        self._pending = b""
        self._begun = False
        self.exit_code: int | None = None
        self.rest = b""
        """What came after the end mark."""

    def feed(self, data: bytes) -> bool:
        """Take a piece; return True once the end mark was seen."""
        self._pending += data
        before, code, rest = self._find_end()
        if code is not None:
            self.exit_code = code
            self.rest = rest
            self._keep(before, final=True)
            return True
        self._keep(self._pending, final=False)
        return False

    def _find_end(self) -> tuple[bytes, int | None, bytes]:
        """Split what is pending at the end mark, which a number and one more byte complete."""
        start = self._pending.find(self._mark)
        while start >= 0:
            digits, closed, rest = self._pending[start + len(self._mark) :].partition(b"\x1e")
            if closed and len(digits) <= 3 and digits.isdigit():
                return self._pending[:start], int(digits), rest
            start = self._pending.find(self._mark, start + 1)
        return self._pending, None, b""

    def finish(self) -> None:
        """Keep what is held back: the stream ended without an end mark."""
        self._keep(self._pending, final=True)

    def _keep(self, data: bytes, *, final: bool) -> None:
        if not self._begun:
            before, found, after = data.partition(self._begin)
            if not found:
                self._pending = before[-len(self._begin) :]
                return
            self._begun = True
            data = after
        held = 0 if final else min(len(data), self._longest_end)
        self._output.feed(data[: len(data) - held])
        self._pending = data[len(data) - held :]
