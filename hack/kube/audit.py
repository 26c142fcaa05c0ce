"""What the API server was asked to write, by whom: read from its own audit log."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POLICY: dict[str, Any] = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived", "ResponseStarted"],
    "rules": [{"level": "Metadata"}],
}
_WRITES = {"create", "update", "patch", "delete", "deletecollection"}


@dataclass(frozen=True)
class Request:
    """One request that the API server answered."""

    user: str
    verb: str
    resource: str
    """Plural, with the subresource if there is one: `rolloutjobs/status`."""
    namespace: str
    name: str
    code: int
    """HTTP status of the answer."""
    user_agent: str

    @property
    def is_write(self) -> bool:
        """Tell whether it asked for a change, dry runs included."""
        return self.verb in _WRITES


def requests(log: Path) -> Iterator[Request]:
    """Read an audit log, oldest request first; a last line that is still being written is left."""
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield _request(json.loads(line))


def _request(event: dict[str, Any]) -> Request:
    target = event.get("objectRef", {})
    parts = (target.get("resource", ""), target.get("subresource", ""))
    return Request(
        user=event["user"]["username"],
        verb=event["verb"],
        resource="/".join(part for part in parts if part),
        namespace=target.get("namespace", ""),
        name=target.get("name", ""),
        code=event.get("responseStatus", {}).get("code", 0),
        user_agent=event.get("userAgent", ""),
    )
