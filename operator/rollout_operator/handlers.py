"""What kopf does for the operator: it watches, and tells the feed what it sees.

Handlers of events are level-triggered and leave no mark on users' objects. They only feed the
queue of the one reconciler, which decides and writes, so there is no second mechanism.
"""

from typing import Any

import kopf

from rollout_crds.resources import BY_KIND, Resource
from rollout_operator.cache import OWNERS, key_of
from rollout_operator.kubernetes.api import runs_in_cluster
from rollout_operator.kubernetes.feed import Feed
from rollout_operator.kubernetes.mirror import is_ours, mirror_all
from rollout_operator.kubernetes.names import GROUP, OUR_PODS, VERSION

_PREFIX = "rollout-operator.dev"
_WATCH_SECONDS = 300
_CONNECT_SECONDS = 10


def make_registry(feed: Feed) -> kopf.OperatorRegistry:
    """The handlers that bring what kopf sees to a feed."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(login)

    async def seen(event: kopf.RawEvent, **_: Any) -> None:
        take(feed, event)

    for kind in sorted(OWNERS):
        kopf.on.event(GROUP, VERSION, BY_KIND[kind].plural, registry=registry)(seen)
    kopf.on.event("", "v1", "pods", registry=registry)(seen)
    return registry


def make_settings() -> kopf.OperatorSettings:
    """Watch only what is ours, post nothing, and mark nothing with kopf's own names."""
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True
    settings.posting.enabled = False
    settings.persistence.finalizer = f"{_PREFIX}/kopf"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=_PREFIX)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=_PREFIX)
    settings.watching.server_timeout = _WATCH_SECONDS
    settings.watching.connect_timeout = _CONNECT_SECONDS
    settings.watching.label_selectors["", "v1", "pods"] = OUR_PODS
    return settings


def login(**kwargs: Any) -> kopf.ConnectionInfo | None:
    """Use the same credentials as our own requests."""
    chosen = kopf.login_with_service_account if runs_in_cluster() else kopf.login_with_kubeconfig
    return chosen(**kwargs)


def take(feed: Feed, event: kopf.RawEvent) -> None:
    """Take over one event; a listing by kopf (no type) means that changes may have been missed."""
    found: dict[str, Any] = dict(event["object"])
    kind = found["kind"]
    if kind == "Pod" and not is_ours(found):
        return
    for resource in mirror_all(kind, [found]):
        _feed(feed, event["type"], resource)


def _feed(feed: Feed, change: str | None, resource: Resource) -> None:
    if change == "DELETED":
        feed.drop(key_of(resource), resource.metadata.uid)
        return
    feed.put(resource)
    if change is None:
        feed.ask_for_listing()
