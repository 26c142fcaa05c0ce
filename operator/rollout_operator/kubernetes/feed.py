"""What is known of the cluster's objects: the newest version of each, whoever brought it.

Watches, listings and the answers to our own writes come in any order. The feed keeps the newest of
each object and hands on what has changed, so that an old event never undoes a later write.
"""

import asyncio
from collections.abc import Iterable

from rollout_crds.resources import ChangedObject, Resource
from rollout_operator.cache import Key, key_of
from rollout_operator.ports import Batch

_LISTING_PAUSE_SECONDS = 5.0
"""Least time between two listings that the watch asks for."""


def _version(resource: Resource) -> int:
    return int(resource.metadata.resource_version or 0)


class Feed:
    """Collects objects and gives them out as batches."""

    def __init__(self) -> None:
        self._latest: dict[Key, Resource] = {}
        self._changed: set[Key] = set()
        self._gone: set[str] = set()
        """Uids of the objects that have gone since the last listing."""
        self._wanted = False
        self._news = asyncio.Event()

    def put(self, resource: Resource) -> None:
        """Take an object over, unless a newer version is known."""
        key = key_of(resource)
        known = self._latest.get(key)
        if resource.metadata.uid in self._gone:
            return
        if known is None or _version(known) < _version(resource):
            self._latest[key] = resource
            self._tell(key)

    def drop(self, key: Key, uid: str | None = None) -> None:
        """Take over that an object is gone; with a uid, only if it is that one."""
        known = self._latest.get(key)
        if known is not None and uid in {None, known.metadata.uid}:
            del self._latest[key]
            self._gone.add(known.metadata.uid)
            self._tell(key)

    def ask_for_listing(self) -> None:
        """Some changes may have been missed."""
        self._wanted = True
        self._news.set()

    def get(self, key: Key) -> Resource | None:
        """The newest version of an object."""
        return self._latest.get(key)

    def take_listing(self, listed: Iterable[Resource], version: int) -> Batch:
        """Take over all there was at a version; what is newer stays."""
        found = {key_of(r): r for r in listed if r.metadata.uid not in self._gone}
        newer = {key: known for key, known in self._latest.items() if _version(known) > version}
        self._latest = found | newer
        self._changed.clear()
        self._gone.clear()
        self._wanted = False
        return Batch(tuple(map(self._change, self._latest)), complete=True)

    async def changes(self, seconds: float) -> Batch | None:
        """Wait for changes and give them; None: it is time for a listing."""
        loop = asyncio.get_running_loop()
        end, listing_from = loop.time() + seconds, loop.time() + _LISTING_PAUSE_SECONDS
        while not self._changed:
            due = listing_from if self._wanted else end
            if due <= loop.time():
                return None
            self._news.clear()
            try:
                async with asyncio.timeout_at(due):
                    await self._news.wait()
            except TimeoutError:
                continue
        changed, self._changed = self._changed, set()
        return Batch(tuple(self._change(key) for key in changed))

    def _tell(self, key: Key) -> None:
        self._changed.add(key)
        self._news.set()

    def _change(self, key: Key) -> ChangedObject:
        kind, namespace, name = key
        return ChangedObject(
            kind=kind, namespace=namespace, name=name, object=self._latest.get(key)
        )
