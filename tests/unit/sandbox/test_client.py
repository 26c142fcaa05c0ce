"""Answers become values and errors of the right fault."""

from rollout_sandbox.client import error_of, parse_head, request_head
from rollout_sandbox.errors import TOOL_ERRORS, SandboxDied
from rollout_sandbox.server.messages import encode
from rollout_sandbox.server.refusals import Code
from rollout_sandbox.server.types import ErrorBody


def test_every_refusal_has_an_error():
    assert set(TOOL_ERRORS) == set(Code)
    for code, kind in TOOL_ERRORS.items():
        error = error_of(400, encode(ErrorBody(code.value, "why")))
        assert type(error) is kind
        assert str(error) == "why"


def test_a_failure_of_the_server_is_no_answer():
    assert isinstance(error_of(500, b"Internal Server Error"), SandboxDied)
    assert isinstance(error_of(400, b'{"error": "unknown", "message": "x"}'), SandboxDied)


def test_heads_are_written_and_read():
    assert request_head("/x", 3) == (
        b"POST /x HTTP/1.1\r\nhost: sandbox\r\ncontent-length: 3\r\n\r\n"
    )
    assert parse_head(b"HTTP/1.1 200 OK\r\nX: 1\r\ncontent-length: 12\r\n\r\n") == (200, 12)
