"""Events on Kubernetes: equal ones are one object that counts, and are not written too often."""

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime

from rollout_crds.base import API_VERSION
from rollout_crds.resources import Event
from rollout_operator.errors import Conflict
from rollout_operator.kubernetes.api import MERGE, KubernetesApi, Object
from rollout_operator.kubernetes.names import FIELD_MANAGER, collection, item

_REPEAT_SECONDS = 300.0
_REMEMBERED = 4096
_LONGEST_MESSAGE = 1024


class EventLog:
    """Writes events, an equal one at most every five minutes."""

    def __init__(self, api: KubernetesApi, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api, self._monotonic = api, monotonic
        self._posted: OrderedDict[str, float] = OrderedDict()
        """Time of the last writing of each, by name; the latest are kept."""

    async def post(self, event: Event, uid: str) -> None:
        """Write an event about the object with this uid."""
        name, now = _name(event, uid), self._monotonic()
        if now - self._posted.get(name, -_REPEAT_SECONDS) < _REPEAT_SECONDS:
            return
        try:
            await self._api.create(collection("Event", event.namespace), _body(event, name, uid))
        except Conflict:
            await self._count(event.namespace, name)
        self._posted[name] = now
        self._posted.move_to_end(name)
        while len(self._posted) > _REMEMBERED:
            self._posted.popitem(last=False)

    async def _count(self, namespace: str, name: str) -> None:
        path = item("Event", namespace, name)
        known = await self._api.get(path)
        body = {"count": known.get("count", 1) + 1, "lastTimestamp": _now()}
        await self._api.request("PATCH", path, body=body, content_type=MERGE)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _name(event: Event, uid: str) -> str:
    told = "\0".join((event.kind, uid, event.type, event.reason, event.message))
    return f"{event.name}.{hashlib.sha256(told.encode()).hexdigest()[:16]}"


def _body(event: Event, name: str, uid: str) -> Object:
    about = {"apiVersion": API_VERSION, "kind": event.kind, "name": event.name, "uid": uid}
    now = _now()
    return {
        "metadata": {"name": name, "namespace": event.namespace},
        "involvedObject": {**about, "namespace": event.namespace},
        "type": event.type,
        "reason": event.reason,
        "message": event.message[:_LONGEST_MESSAGE],
        "source": {"component": FIELD_MANAGER},
        "reportingComponent": FIELD_MANAGER,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
