"""Resources and pods on a Kubernetes cluster, behind the port that the embedded one has too.

Objects of our kinds are written by server-side apply, each with the uid that is meant, so that
nothing is written to another object of the same name. Pods are only created and deleted.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from rollout_crds.base import API_VERSION
from rollout_crds.pod import Pod, PodStatus
from rollout_crds.resources import Event, Resource
from rollout_operator.cache import OWNERS, key_of
from rollout_operator.errors import Conflict, Missing, Refused
from rollout_operator.kubernetes.api import KubernetesApi
from rollout_operator.kubernetes.events import EventLog
from rollout_operator.kubernetes.feed import Feed
from rollout_operator.kubernetes.mirror import mirror, mirror_all
from rollout_operator.kubernetes.names import OUR_PODS, collection, item
from rollout_operator.plan import FINALIZER, Owner, Status
from rollout_operator.ports import Batch

Object = dict[str, Any]
_RELIST_SECONDS = 300.0
_KINDS = (*sorted(OWNERS), "Pod")


class KubernetesCluster:
    """A cluster, or some of its namespaces.

    Args:
        api: To the API server.
        feed: What a watch brings.
        namespaces: Those to look after; none: all of them.
    """

    def __init__(self, api: KubernetesApi, feed: Feed, namespaces: Sequence[str] = ()) -> None:
        self._api, self._feed = api, feed
        self._namespaces = tuple(namespaces) or (None,)
        self._events = EventLog(api)

    async def watch(self) -> AsyncIterator[Batch]:
        """All objects of our kinds, then their changes; a listing again whenever one is due."""
        while True:
            yield await self._list()
            while batch := await self._feed.changes(_RELIST_SECONDS):
                yield batch

    async def check(self) -> None:
        """Make sure that our kinds are defined and may be read.

        Raises:
            Refused: They are not, with the remedy.
            Unavailable: The API server does not answer.
        """
        for kind in _KINDS:
            try:
                await self._api.get(collection(kind, self._namespaces[0]), limit="1")
            except Missing as error:
                msg = f"the cluster has no kind {kind}: install the chart rollout-operator-crds"
                raise Refused(msg) from error

    async def _list(self) -> Batch:
        versions, found = [], []
        for kind in _KINDS:
            query = {"labelSelector": OUR_PODS} if kind == "Pod" else {}
            for namespace in self._namespaces:
                listed = await self._api.get(collection(kind, namespace), **query)
                versions.append(int(listed["metadata"]["resourceVersion"]))
                found += mirror_all(kind, listed["items"])
        return self._feed.take_listing(found, min(versions))

    async def create_pod(self, pod: Pod) -> Pod:
        """Create a pod; one of that name with the same owner is fine."""
        namespace = pod.metadata.namespace
        try:
            made = await self._api.create(collection("Pod", namespace), _new(pod))
        except Conflict as error:
            made = await self._api.get(item("Pod", namespace, pod.metadata.name))
            existing = mirror("Pod", made)
            if existing.metadata.owner_references != pod.metadata.owner_references:
                msg = f"pod `{pod.metadata.name}` exists and belongs to another owner: delete it"
                raise Refused(msg) from error
        created = mirror("Pod", made)
        assert isinstance(created, Pod)  # noqa: S101 - asked for as one
        self._feed.put(created)
        return created

    async def delete(self, target: Resource) -> None:
        """Ask for the deletion of an object; one that is gone already is fine."""
        meta = target.metadata
        body: Object = {"preconditions": {"uid": meta.uid}, "propagationPolicy": "Background"}
        try:
            path = item(target.kind, meta.namespace, meta.name)
            await self._api.request("DELETE", path, body=body)
        except Missing:
            self._feed.drop(key_of(target), meta.uid)
        except Conflict:  # another object has the name now, which is as good as gone
            self._feed.ask_for_listing()

    async def write_status(self, target: Resource, status: Status | PodStatus) -> Resource:
        """Replace the status of an object."""
        stated = status.model_dump(mode="json", by_alias=True, exclude_none=True)
        return await self._apply(target, {"status": stated}, "/status")

    async def write_finalizers(self, target: Owner, finalizers: tuple[str, ...]) -> Resource:
        """Set or take back our finalizer; those of others are theirs to write."""
        ours = [name for name in finalizers if name == FINALIZER]
        return await self._apply(target, {}, finalizers=ours)

    async def _apply(
        self, target: Resource, body: Object, part: str = "", finalizers: list[str] | None = None
    ) -> Resource:
        meta = target.metadata
        identity: Object = {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid}
        if finalizers is not None:
            identity["finalizers"] = finalizers
        stated = {"apiVersion": API_VERSION, "kind": target.kind, "metadata": identity, **body}
        try:
            path = item(target.kind, meta.namespace, meta.name)
            written = mirror(target.kind, await self._api.apply(f"{path}{part}", stated))
        except Missing:
            self._feed.drop(key_of(target), meta.uid)
            raise
        except Conflict:
            self._feed.ask_for_listing()
            raise
        self._feed.put(written)
        return written

    async def post_event(self, event: Event) -> None:
        """Record an event for people."""
        about = self._feed.get((event.kind, event.namespace, event.name))
        await self._events.post(event, about.metadata.uid if about is not None else "")


def _new(pod: Pod) -> Object:
    meta = pod.metadata
    metadata = meta.model_dump(
        mode="json",
        by_alias=True,
        include={"name", "namespace", "labels", "annotations", "owner_references"},
    )
    spec = pod.spec.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
