"""RolloutPool: warm stage pods that several jobs share."""

from typing import Literal

from pydantic import Field

from rollout_crds.base import API_VERSION, ApiVersion, Count, ResourceModel
from rollout_crds.meta import Conditions, ObjectMeta
from rollout_crds.placement import Placement
from rollout_crds.rolloutjob import Stages


class RolloutPoolSpec(ResourceModel):
    """The stage pods to keep warm."""

    stages: Stages = Field(default_factory=Stages)
    """Size of each stage pool."""
    placement: Placement | None = None
    """Where the stage pods run; unset: on the operator's own cluster."""


class RolloutPoolStatus(ResourceModel):
    """What the operator has observed."""

    conditions: Conditions = Field(default_factory=list)
    """The latest observations; `Ready` sums them up."""
    observed_generation: Count = 0
    """`metadata.generation` that this status was computed from."""
    replicas: Count = 0
    """Stage pods of all stages."""
    ready_replicas: Count = 0
    """Stage pods that run."""


class RolloutPool(ResourceModel):
    """Warm stage pods that jobs use by `poolRef`."""

    api_version: ApiVersion = API_VERSION
    kind: Literal["RolloutPool"] = "RolloutPool"
    metadata: ObjectMeta
    spec: RolloutPoolSpec = Field(default_factory=RolloutPoolSpec)
    status: RolloutPoolStatus = Field(default_factory=RolloutPoolStatus)
