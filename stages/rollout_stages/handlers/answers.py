r"""Finds the final answer in what a model wrote."""

import re

_BOX = "\\boxed{"
_REASONING = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_LONGEST = 2000


def final_answer(text: str) -> str | None:
    r"""The last complete `\boxed{...}` with its braces, else the last line; None if there is none.

    >>> final_answer("so \\boxed{1} or \\boxed{\\frac{1}{2}}.")
    '\\boxed{\\frac{1}{2}}'
    >>> final_answer("First.\nThe answer is 42.\n")
    'The answer is 42.'
    """
    said = _REASONING.sub("", text)
    boxed = _last_box(said)
    if boxed is not None:
        return boxed
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1][-_LONGEST:] if lines else None


def _last_box(text: str) -> str | None:
    start = text.rfind(_BOX)
    while start >= 0:
        end = _closing_brace(text, start + len(_BOX))
        if end is not None and end - start <= _LONGEST:
            return text[start : end + 1]
        start = text.rfind(_BOX, 0, start)
    return None


def _closing_brace(text: str, position: int) -> int | None:
    depth = 1
    for index in range(position, min(len(text), position + _LONGEST)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index
    return None
