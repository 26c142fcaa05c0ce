"""The kinds of resources, how they are named in URLs and commands, and what may change in them."""

from dataclasses import dataclass
from datetime import datetime

from pydantic import Field

from rollout_crds.base import ResourceModel
from rollout_crds.llmpool import LLMPool
from rollout_crds.pod import Pod
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.rolloutpool import RolloutPool

Resource = RolloutJob | RolloutPool | LLMPool | Pod


@dataclass(frozen=True)
class ResourceKind:
    """Names of a kind."""

    kind: str
    plural: str
    short_name: str
    model: type[RolloutJob] | type[RolloutPool] | type[LLMPool] | type[Pod]
    mutable_spec_fields: frozenset[str] | None = None
    """Top-level spec fields (camelCase) that may change after creation; None: all of them."""


KINDS: tuple[ResourceKind, ...] = (
    ResourceKind(
        "RolloutJob",
        "rolloutjobs",
        "rj",
        RolloutJob,
        frozenset(
            {
                "stages",
                "placement",
                "priority",
                "suspended",
                "activeDeadlineSeconds",
                "preRunningDeadlineSeconds",
                "ttlSecondsAfterFinished",
            }
        ),
    ),
    ResourceKind("RolloutPool", "rolloutpools", "rpool", RolloutPool),
    ResourceKind("LLMPool", "llmpools", "llmp", LLMPool),
    ResourceKind("Pod", "pods", "po", Pod, frozenset({"nodeName"})),
)
BY_KIND = {kind.kind: kind for kind in KINDS}
BY_PLURAL = {kind.plural: kind for kind in KINDS}


class Event(ResourceModel):
    """Something that happened to an object, for people; equal ones are counted, not repeated."""

    kind: str
    name: str
    namespace: str = "default"
    type: str = "Normal"
    """`Normal` or `Warning`."""
    reason: str
    message: str
    count: int = 1
    first_time: datetime | None = None
    last_time: datetime | None = None


class ChangedObject(ResourceModel):
    """An object that was created, changed or deleted."""

    kind: str
    namespace: str
    name: str
    object: Resource | None = Field(default=None, discriminator="kind")
    """Missing when it was deleted."""


class Changes(ResourceModel):
    """What changed since a resource version: the latest state of each changed object."""

    resource_version: str
    """Pass it back to wait for what is newer."""
    changed: list[ChangedObject]
