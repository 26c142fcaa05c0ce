"""RolloutPool: warm stage pods that several jobs share."""

from typing import Annotated, Literal

from pydantic import Field

from rollout_crds.base import API_VERSION, ApiVersion, ResourceModel
from rollout_crds.meta import Condition, ObjectMeta
from rollout_crds.rolloutjob import Stages


class RolloutPoolSpec(ResourceModel):
    """The stage pods to keep warm."""

    stages: Stages = Field(default_factory=Stages)


class RolloutPoolStatus(ResourceModel):
    """What the operator has observed."""

    conditions: Annotated[list[Condition], Field(max_length=16)] = Field(default_factory=list)
    observed_generation: int = 0
    replicas: int = 0
    """Stage pods of all stages."""
    ready_replicas: int = 0
    """Stage pods that run."""


class RolloutPool(ResourceModel):
    """Warm stage pods that jobs use by `poolRef`."""

    api_version: ApiVersion = API_VERSION
    kind: Literal["RolloutPool"] = "RolloutPool"
    metadata: ObjectMeta
    spec: RolloutPoolSpec = Field(default_factory=RolloutPoolSpec)
    status: RolloutPoolStatus = Field(default_factory=RolloutPoolStatus)
