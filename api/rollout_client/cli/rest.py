"""Plain JSON to and from the gateway with the standard library alone.

A table of a few jobs needs neither models nor an event loop. Loading those and the HTTP library of
the SDK takes longer than the whole command may, so commands that show or name resources use this.
"""

import http.client
import json
import socket
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from rollout_client.backoff import backoff
from rollout_client.errors import Unavailable, error_from_problem, unreachable
from rollout_crds.locations import ServerAddress, parse_server_url

Json = dict[str, Any]
Query = Mapping[str, object]


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("gateway", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Gateway:
    """Requests to one gateway, each on a connection of its own.

    Args:
        url: `unix:///path.sock` or `http(s)://host:port`.
        patience_seconds: How long to go on trying while the gateway does not answer.
        timeout_seconds: Longest silence within one attempt.
    """

    def __init__(
        self, url: str, patience_seconds: float = 0.0, timeout_seconds: float = 30.0
    ) -> None:
        self._address = parse_server_url(url)
        self._patience_seconds = patience_seconds
        self._timeout_seconds = timeout_seconds

    def get(self, path: str, query: Query | None = None, hold_seconds: float = 0.0) -> Json:
        """The JSON object at `path`; the gateway may hold the request for `hold_seconds`.

        Raises:
            GatewayError: The gateway refused, or did not answer.
        """
        return _object(self.request("GET", path, query, hold_seconds=hold_seconds))

    def put(self, path: str, query: Query, body: object) -> Json:
        """Send an object to `path` and return the answer.

        Raises:
            GatewayError: The gateway refused, or did not answer.
        """
        return _object(self.request("PUT", path, query, body=body))

    def delete(self, path: str, query: Query) -> None:
        """Ask for the deletion of what is at `path`.

        Raises:
            GatewayError: The gateway refused, or did not answer.
        """
        self.request("DELETE", path, query)

    def request(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        *,
        body: object = None,
        hold_seconds: float = 0.0,
    ) -> bytes:
        """Send a request and return the body of the answer.

        Raises:
            GatewayError: The gateway refused, or did not answer.
        """
        deadline = time.monotonic() + self._patience_seconds
        target = f"{path}?{urlencode(query)}" if query else path
        content = None if body is None else json.dumps(body).encode()
        waits = backoff()
        while True:
            try:
                return self._attempt(method, target, content, self._timeout_seconds + hold_seconds)
            except Unavailable:
                wait = next(waits)
                if time.monotonic() + wait > deadline:
                    raise
                time.sleep(wait)

    def _attempt(self, method: str, target: str, content: bytes | None, timeout: float) -> bytes:
        label = f"{method} {target.partition('?')[0]}"
        connection = _connection(self._address, timeout)
        headers = {"content-type": "application/json"} if content else {}
        try:
            connection.request(method, target, body=content, headers=headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise unreachable(self._address.url, error, label) from error
        finally:
            connection.close()
        if 200 <= response.status < 300:
            return answer
        raise error_from_problem(response.status, _decoded(answer), label)


def _connection(address: ServerAddress, timeout: float) -> http.client.HTTPConnection:
    if address.socket_path:
        return _UnixConnection(address.socket_path, timeout)
    parts = urlsplit(address.base_url)
    secure = parts.scheme == "https"
    make = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    return make(parts.netloc, timeout=timeout)


def _decoded(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return None


def _object(content: bytes) -> Json:
    value = _decoded(content)
    return value if isinstance(value, dict) else {}
