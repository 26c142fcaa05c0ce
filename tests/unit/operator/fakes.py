"""A cluster, a gateway and a probe in memory, for tests of the code around the plans."""

import asyncio

from rollout_crds.resources import ChangedObject
from rollout_operator.cache import key_of
from rollout_operator.errors import Missing, Refused, Unavailable
from rollout_operator.observed import ProbeResult
from rollout_operator.ports import Batch
from tests.unit.operator.factories import gateway_job


class FakeCluster:
    """Keeps objects, reports changes, and counts writes."""

    def __init__(self):
        self.objects = {}
        self.events = []
        self.writes = []
        self.down = False
        self.taken_names = set()
        self._watchers = []

    def declare(self, *resources):
        for resource in resources:
            self._store(resource)

    def break_watches(self):
        for queue in self._watchers:
            queue.put_nowait(None)

    async def watch(self):
        self._check()
        queue = asyncio.Queue()
        self._watchers.append(queue)
        yield Batch(tuple(_change(o) for o in self.objects.values()), complete=True)
        while (change := await queue.get()) is not None:
            yield Batch((change,))
        self._watchers.remove(queue)
        raise Unavailable("the connection broke")

    async def create_pod(self, pod):
        self._check()
        self.writes.append(("create", pod.metadata.name))
        if pod.metadata.name in self.taken_names:
            raise Refused(f"pod `{pod.metadata.name}` exists and belongs to another owner")
        self._store(pod)
        return pod

    async def delete(self, target):
        self._check()
        self.writes.append(("delete", target.metadata.name))
        self.objects.pop(key_of(target), None)
        self._report(
            ChangedObject(kind=target.kind, namespace=key_of(target)[1], name=key_of(target)[2])
        )

    async def write_status(self, target, status):
        return self._update(target, "status", {"status": status})

    async def write_finalizers(self, target, finalizers):
        stored = self.objects.get(key_of(target))
        if stored is None:
            raise Missing(target.metadata.name)
        meta = stored.metadata.model_copy(update={"finalizers": list(finalizers)})
        if meta.deletion_timestamp is not None and not finalizers:
            await self.delete(target)
            return stored
        return self._update(target, "finalizers", {"metadata": meta})

    async def post_event(self, event):
        self._check()
        self.events.append(event)

    def names(self, kind):
        return sorted(name for found, _, name in self.objects if found == kind)

    def _update(self, target, what, changes):
        self._check()
        self.writes.append((what, target.metadata.name))
        if key_of(target) not in self.objects:
            raise Missing(target.metadata.name)
        updated = self.objects[key_of(target)].model_copy(update=changes)
        self._store(updated)
        return updated

    def _store(self, resource):
        self.objects[key_of(resource)] = resource
        self._report(_change(resource))

    def _report(self, change):
        for queue in self._watchers:
            queue.put_nowait(change)

    def _check(self):
        if self.down:
            raise Unavailable("connection refused")


def _change(resource):
    kind, namespace, name = key_of(resource)
    return ChangedObject(kind=kind, namespace=namespace, name=name, object=resource)


class FakeGateway:
    """Keeps jobs and registrations."""

    def __init__(self):
        self.jobs = {}
        self.states = []
        self.pools = {}
        self.registered = 0
        self.down = False
        self.refuse = None
        self.defect_for = None

    async def job(self, uid):
        self._check()
        if uid == self.defect_for:
            raise ZeroDivisionError
        return self.jobs.get(uid)

    async def submit(self, submission):
        self._check()
        if self.refuse is not None:
            raise self.refuse
        self.jobs.setdefault(submission.uid, gateway_job())

    async def set_state(self, uid, state):
        self._check()
        self.states.append((uid, state))
        if state.cancelled:
            self.jobs[uid] = self.jobs[uid].model_copy(update={"complete": True})

    async def purge(self, uid):
        self._check()
        self.jobs.pop(uid, None)

    async def register(self, registration):
        self._check()
        self.registered += 1
        self.pools[registration.namespace, registration.name] = registration

    async def unregister(self, namespace, name):
        self._check()
        self.pools.pop((namespace, name), None)

    def _check(self):
        if self.down:
            raise Unavailable("connection refused")


class FakeProbe:
    """Every server is healthy unless it is named as dead."""

    def __init__(self):
        self.dead = set()

    async def probe(self, url):
        if url in self.dead:
            return ProbeResult(url, error="connection refused")
        return ProbeResult(url, models=(("m", 4096),))
