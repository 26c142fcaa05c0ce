"""How things are named on Kubernetes: paths of the API, our mark on what we write."""

from rollout_crds.base import API_VERSION
from rollout_crds.resources import BY_KIND

GROUP, VERSION = API_VERSION.split("/")
FIELD_MANAGER = "rollout-operator"
OUR_PODS = "app.kubernetes.io/managed-by=rollout-operator"
"""Label selector of the pods that the operator creates."""


def collection(kind: str, namespace: str | None = None) -> str:
    """Path of all objects of a kind, in a namespace or everywhere."""
    root = "/api/v1" if kind in {"Pod", "Event"} else f"/apis/{API_VERSION}"
    inside = f"/namespaces/{namespace}" if namespace is not None else ""
    return f"{root}{inside}/{BY_KIND[kind].plural if kind in BY_KIND else 'events'}"


def item(kind: str, namespace: str, name: str) -> str:
    """Path of one object."""
    return f"{collection(kind, namespace)}/{name}"
