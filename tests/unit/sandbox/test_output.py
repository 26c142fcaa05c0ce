"""Output of any size is kept as head and tail, and never as half a character."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_sandbox.server.output import OutputBuffer, trim_end, trim_start


def fed(limit: int, chunks: list[bytes]) -> OutputBuffer:
    buffer = OutputBuffer(limit)
    for chunk in chunks:
        buffer.feed(chunk)
    return buffer


@given(st.lists(st.binary(max_size=50), max_size=20), st.integers(2, 100))
def test_the_kept_text_depends_only_on_the_bytes(chunks, limit):
    whole = b"".join(chunks)
    assert fed(limit, chunks).text() == fed(limit, [whole]).text()


@given(st.text(max_size=60))
def test_short_text_is_kept_as_it_is(text):
    data = text.encode()
    assert fed(1000, [data[i : i + 1] for i in range(len(data))]).text() == text


@given(st.text(alphabet="aé漢😀", min_size=40, max_size=80), st.integers(8, 30))
def test_a_cut_never_leaves_half_characters(text, limit):
    buffer = fed(limit, [text.encode()])
    head, note, tail = buffer.text().split("\n")
    assert text.startswith(head)
    assert text.endswith(tail)
    kept = len(head.encode()) + len(tail.encode())
    assert note == f"[... {len(text.encode()) - kept} bytes cut ...]"


@pytest.mark.parametrize("text", ["é", "漢", "😀"])
def test_trimming_drops_only_incomplete_characters(text):
    data = f"a{text}".encode()
    assert trim_end(data) == data
    assert trim_start(data) == data
    for missing in range(1, len(text.encode())):
        assert trim_end(data[:-missing]) == b"a"
        assert trim_start(text.encode()[missing:] + b"a") == b"a"
