"""The operator's copy of all resources, kept up by the cluster's watch.

Our own writes go into it at once, so that the next plan sees them before the watch reports them.
"""

from collections.abc import Iterable

from rollout_crds.llmpool import LLMPool
from rollout_crds.pod import Pod
from rollout_crds.resources import ChangedObject, Resource
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.rolloutpool import RolloutPool
from rollout_operator.pods import is_owned_by
from rollout_operator.ports import Batch

Key = tuple[str, str, str]
"""Kind, namespace and name of an object."""
OWNERS = frozenset({"RolloutJob", "RolloutPool", "LLMPool"})


def key_of(resource: Resource) -> Key:
    """The key of an object."""
    return (resource.kind, resource.metadata.namespace, resource.metadata.name)


class Cache:
    """Resources by key, with the pods of each owner at hand."""

    def __init__(self) -> None:
        self._objects: dict[Key, Resource] = {}
        self._pods_by_owner: dict[str, set[Key]] = {}

    def take(self, batch: Batch) -> set[Key]:
        """Take over changes and return the owners that they concern."""
        gone = set(self._objects) if batch.complete else set()
        concerned: set[Key] = set()
        for change in batch.changed:
            key = _key_of_change(change)
            gone.discard(key)
            concerned |= self._concerned(key)
            self._take(key, change.object)
            concerned |= self._concerned(key)
        for key in gone:
            concerned |= self._concerned(key)
            self.remove(key)
        return concerned

    def put(self, resource: Resource) -> None:
        """Take over what a write of ours gave."""
        self._take(key_of(resource), resource)

    def remove(self, key: Key) -> None:
        """Forget an object."""
        self._take(key, None)

    def get(self, key: Key) -> Resource | None:
        """The object of this key."""
        return self._objects.get(key)

    def owners(self) -> list[Key]:
        """The keys of all objects that are reconciled."""
        return [key for key in self._objects if key[0] in OWNERS]

    def pods_of(self, uid: str) -> tuple[Pod, ...]:
        """The pods that the object with this uid controls, by name."""
        keys = sorted(self._pods_by_owner.get(uid, ()))
        found = (self._objects.get(key) for key in keys)
        return tuple(pod for pod in found if isinstance(pod, Pod) and is_owned_by(pod, uid))

    def llm_pool(self, namespace: str, name: str) -> LLMPool | None:
        """The LLMPool of this name."""
        found = self._objects.get(("LLMPool", namespace, name))
        return found if isinstance(found, LLMPool) else None

    def rollout_pool(self, namespace: str, name: str) -> RolloutPool | None:
        """The RolloutPool of this name."""
        found = self._objects.get(("RolloutPool", namespace, name))
        return found if isinstance(found, RolloutPool) else None

    def _take(self, key: Key, resource: Resource | None) -> None:
        old = self._objects.pop(key, None)
        if isinstance(old, Pod):
            for uid in _controllers(old):
                self._pods_by_owner[uid].discard(key)
                if not self._pods_by_owner[uid]:
                    del self._pods_by_owner[uid]
        if resource is None:
            return
        self._objects[key] = resource
        if isinstance(resource, Pod):
            for uid in _controllers(resource):
                self._pods_by_owner.setdefault(uid, set()).add(key)

    def _concerned(self, key: Key) -> set[Key]:
        resource = self._objects.get(key)
        if isinstance(resource, Pod):
            references = resource.metadata.owner_references
            return {(r.kind, key[1], r.name) for r in references if r.kind in OWNERS}
        if key[0] == "RolloutJob":
            return {key}
        return {key, *self._jobs_that_use(key)} if key[0] in OWNERS else set()

    def _jobs_that_use(self, key: Key) -> Iterable[Key]:
        kind, namespace, name = key
        for other, job in self._objects.items():
            if not isinstance(job, RolloutJob) or other[1] != namespace:
                continue
            reference = job.spec.llm.pool_ref if kind == "LLMPool" else job.spec.pool_ref
            if reference is not None and reference.name == name:
                yield other


def _key_of_change(change: ChangedObject) -> Key:
    return (change.kind, change.namespace, change.name)


def _controllers(pod: Pod) -> set[str]:
    return {ref.uid for ref in pod.metadata.owner_references if ref.controller}
