"""Messages cross between host and sandbox unchanged, and wrong ones are refused by field."""

import pytest

from rollout_sandbox.server.bash.types import BashRequest
from rollout_sandbox.server.command.types import CommandRequest
from rollout_sandbox.server.files.types import ExportRequest, Listed, Listing
from rollout_sandbox.server.messages import decode, encode


@pytest.mark.parametrize(
    "message",
    [
        BashRequest("echo 'é'\n", 0.5),
        CommandRequest("x", env={"A": "1"}),
        Listing([Listed("a", "file", 1, 0o644), Listed("b", "symlink", 0, 0o777)]),
    ],
)
def test_a_message_comes_back_as_it_was(message):
    encoded = encode(message)
    assert b"\n" not in encoded
    assert decode(type(message), encoded) == message


@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        (BashRequest, b'{"command": 3}', "command must be a string"),
        (BashRequest, b'{"command": "x", "cwd": "/"}', "unknown field 'cwd'"),
        (BashRequest, b"{}", "command is missing"),
        (BashRequest, b"[]", "must be an object"),
        (BashRequest, b"{", "BashRequest: "),
        (BashRequest, b'{"command": "x", "timeout_seconds": true}', "must be a number"),
        (BashRequest, b'{"command": "x", "timeout_seconds": -1}', "must be over 0"),
        (BashRequest, b"[" * 100_000, "BashRequest: "),
        (ExportRequest, b'{"paths": []}', "paths must not be empty"),
        (ExportRequest, b'{"paths": [1]}', "paths holds what must be a string"),
        (CommandRequest, b'{"script": "x", "env": {"A": 1}}', "env must be an object of strings"),
        (Listed, b'{"name": "", "kind": "x", "size": 1, "mode": 1}', "kind must be one of file"),
    ],
)
def test_a_wrong_message_is_refused_by_field(kind, data, problem):
    with pytest.raises(ValueError, match=problem):
        decode(kind, data)
