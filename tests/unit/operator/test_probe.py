"""Whatever answers at an endpoint, the probe says in words what it found."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from rollout_operator.probe import HttpEngineProbe


class Answers(BaseHTTPRequestHandler):
    body = b""

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *args, **kwargs):
        """Stay silent."""


async def probed(body):
    handler = type("Handler", (Answers,), {"body": body})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever).start()
        try:
            return await HttpEngineProbe().probe(f"http://127.0.0.1:{server.server_port}")
        finally:
            server.shutdown()


async def test_a_server_tells_its_models_and_their_length():
    result = await probed(b'{"data": [{"id": "m", "max_model_len": 64, "x": 1}, {"id": "n"}]}')
    assert (result.error, result.models) == (None, (("m", 64), ("n", None)))


@pytest.mark.parametrize(
    "body",
    [
        *(b"<html>", b"", b"[]", b"null", b'{"data": 5}', b'{"data": ["m"]}', b'{"data": [{}]}'),
        b'{"data": [{"id": "m", "max_model_len": -1}]}',
    ],
)
async def test_another_kind_of_server_is_told_apart(body):
    result = await probed(body)
    assert result.error == "/v1/models does not answer in the form of OpenAI's API"
