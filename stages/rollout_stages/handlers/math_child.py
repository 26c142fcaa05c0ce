"""The process that compares mathematical answers: a JSON request a line, two lines of answer.

It dies with its parent and may use two gibibytes of memory; the parent limits its time.
"""

import ctypes
import json
import resource
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
_MEMORY_BYTES = 2 * 1024**3


def _parsed(text: str) -> list[Any]:
    from math_verify import parse

    parsed: list[Any] = parse(text, parsing_timeout=0)
    return parsed


def _reference(text: str) -> list[Any]:
    as_latex = text if "$" in text or "\\boxed" in text else f"\\boxed{{{text}}}"
    return _parsed(as_latex) or _parsed(text)


def _verdict(reference: list[Any], answer: str) -> str:
    from math_verify import verify

    candidate = _parsed(answer)
    if not candidate:
        return "answer unreadable"
    return "equal" if verify(reference, candidate, timeout_seconds=0) else "different"


def _serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        reference = _reference(request["reference"])
        print("reference read" if reference else "reference unreadable", flush=True)
        if reference:
            print(_verdict(reference, request["answer"]), flush=True)


def main() -> None:
    """Serve until standard input ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    _parsed("1")
    print("ready", flush=True)
    _serve()


if __name__ == "__main__":
    main()
