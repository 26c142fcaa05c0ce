"""Objects of the Kubernetes API as our models: pure functions."""

import logging
from collections.abc import Iterable
from typing import Any

from pydantic import ValidationError

from rollout_crds.pod import Pod
from rollout_crds.resources import BY_KIND, Resource
from rollout_operator.kubernetes.names import OUR_PODS

log = logging.getLogger(__name__)

Object = dict[str, Any]
_KEPT_METADATA = (
    *("name", "namespace", "uid", "generation", "resourceVersion", "labels", "annotations"),
    *("creationTimestamp", "deletionTimestamp", "finalizers", "ownerReferences"),
)
_ON_ITS_WAY = {"ContainerCreating", "PodInitializing"}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def mirror(kind: str, found: Object) -> Resource:
    """The object as our model.

    Raises:
        ValueError: It does not fit the model, as one that a newer version stored.
    """
    if kind == "Pod":
        return _pod(found)
    try:
        model = BY_KIND[kind].model
        return model.model_validate(
            {
                "metadata": _metadata(found["metadata"]),
                "spec": found.get("spec", {}),
                "status": found.get("status", {}),
            }
        )
    except ValidationError as error:
        name = f"{found['metadata'].get('namespace')}/{found['metadata'].get('name')}"
        msg = f"{kind} {name} does not fit this version of the operator: {error}"
        raise ValueError(msg) from error


def mirror_all(kind: str, found: Iterable[Object]) -> list[Resource]:
    """Those that fit our models; the others are told and left alone."""
    mirrored = []
    for one in found:
        try:
            mirrored.append(mirror(kind, one))
        except ValueError as error:
            log.error("not looked after: %s", error)
    return mirrored


def is_ours(pod: Object) -> bool:
    """Whether a pod carries the label of those that we create."""
    key, value = OUR_PODS.split("=")
    return bool(pod["metadata"].get("labels", {}).get(key) == value)


def _metadata(found: Object) -> Object:
    kept = {key: found[key] for key in _KEPT_METADATA if key in found}
    annotations = kept.get("annotations", {})
    kept["annotations"] = {k: v for k, v in annotations.items() if k != _LAST_APPLIED}
    kept["ownerReferences"] = [
        {"controller": False, "blockOwnerDeletion": False, **reference}
        for reference in kept.get("ownerReferences", [])
    ]
    return kept


def _pod(found: Object) -> Pod:
    """A pod with what plans look at; its spec is known by the hash in its annotation."""
    spec, status = found["spec"], found.get("status", {})
    reason, message = trouble(status)
    return Pod.model_validate(
        {
            "metadata": _metadata(found["metadata"]),
            "spec": {"containers": [], "nodeName": spec.get("nodeName")},
            "status": {
                "phase": status.get("phase", "Pending"),
                "reason": reason,
                "message": message,
                "startTime": status.get("startTime"),
                "restartCount": sum(c.get("restartCount", 0) for c in _containers(status)),
                "podIP": status.get("podIP", ""),
            },
        }
    )


def _containers(status: Object) -> list[Object]:
    return [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]


def trouble(status: Object) -> tuple[str, str]:
    """Reason and message for what keeps a pod from running, empty when nothing does."""
    if status.get("reason"):
        return status["reason"], status.get("message", "")
    for container in _containers(status):
        if found := _container_trouble(container):
            return found
    conditions = {c["type"]: c for c in status.get("conditions", [])}
    scheduled, ready = conditions.get("PodScheduled", {}), conditions.get("Ready", {})
    if scheduled.get("status") == "False":
        return scheduled.get("reason") or "Unschedulable", scheduled.get("message", "")
    if status.get("phase") == "Running" and ready.get("status", "True") != "True":
        message = ready.get("message") or "its node or its probe does not say that it is ready"
        return ready.get("reason") or "NotReady", message
    return "", ""


def _container_trouble(container: Object) -> tuple[str, str] | None:
    state, last = container.get("state", {}), container.get("lastState", {}).get("terminated")
    if ended := state.get("terminated"):
        return _end(ended) if ended.get("exitCode") else None
    waiting = state.get("waiting", {})
    if waiting.get("reason", "ContainerCreating") in _ON_ITS_WAY:
        return None
    ends = f"; it last ended with {': '.join(_end(last))}" if last else ""
    return waiting["reason"], f"{waiting.get('message', '')}{ends}"


def _end(ended: Object) -> tuple[str, str]:
    message = ended.get("message") or f"exit code {ended.get('exitCode')}"
    return ended.get("reason") or "Error", message
