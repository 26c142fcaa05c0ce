"""The scanner finds a command's output whatever surrounds it and however it is cut."""

from hypothesis import given
from hypothesis import strategies as st

from rollout_sandbox.server.bash.framing import Frame, Scanner
from rollout_sandbox.server.output import OutputBuffer

FRAME = Frame("00112233445566778899aabbccddeeff")
BEGIN = FRAME.begin
END = b"\x1e" + FRAME.nonce.encode() + b"\x1e"


def scan(chunks: list[bytes]) -> tuple[bool, int | None, str]:
    output = OutputBuffer(10_000)
    scanner = Scanner(FRAME, output)
    done = any([scanner.feed(chunk) for chunk in chunks])
    return done, scanner.exit_code, output.text()


@given(st.binary(max_size=80), st.integers(0, 255), st.integers(1, 30))
def test_output_between_the_marks_is_exact(data, code, step):
    stream = b"(venv) $ " + BEGIN + data + END + b"%d\x1e" % code
    chunks = [stream[i : i + step] for i in range(0, len(stream), step)]
    assert scan(chunks) == (True, code, data.decode(errors="replace"))


def test_marks_of_another_command_are_text():
    other = Frame("f" * 32)
    stale = b"\x1e" + other.nonce.encode() + b"\x1e0\x1e"
    done, code, text = scan([stale + BEGIN + stale + END + b"7\x1e"])
    assert (done, code, text) == (True, 7, stale.decode())


def test_what_precedes_the_begin_mark_is_dropped_even_with_an_end_mark_in_sight():
    assert scan([b"noise" + END + b"1\x1e"]) == (True, 1, "")


def test_a_stream_that_ends_early_keeps_its_output():
    output = OutputBuffer(100)
    scanner = Scanner(FRAME, output)
    assert not scanner.feed(BEGIN + b"partial")
    scanner.finish()
    assert output.text() == "partial"
    assert scanner.exit_code is None


def test_the_typed_line_holds_no_mark_and_fits_the_terminal():
    line = FRAME.run_line("/.rollout/run/bash-123456", 255)
    assert FRAME.nonce.encode() not in line
    assert len(line) < 4095
    assert line.count(b"\n") == 1
