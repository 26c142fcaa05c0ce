"""The part of a Kubernetes Pod that stage pods and inference servers use.

The operator builds the same object for Kubernetes, for the local node and for the Slurm bridge.
Kubernetes owns the schema, so fields that are not named here are kept as they are.
"""

from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from rollout_crds.base import ResourceModel
from rollout_crds.meta import ObjectMeta


class PodModel(ResourceModel):
    """Part of a Pod: unknown fields are kept."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow", populate_by_name=True)


class PodEnvVar(PodModel):
    """An environment variable of a container."""

    name: str
    value: str = ""


class Container(PodModel):
    """A program to run."""

    name: str
    image: str = ""
    command: list[str] = Field(default_factory=list)
    args: list[str] = Field(default_factory=list)
    env: list[PodEnvVar] = Field(default_factory=list)


class PodSpec(PodModel):
    """What to run and where."""

    containers: list[Container]
    node_name: str | None = None
    scheduler_name: str | None = None
    restart_policy: Literal["Always", "OnFailure", "Never"] = "OnFailure"
    termination_grace_period_seconds: int = 30


class PodStatus(PodModel):
    """What the node has observed."""

    phase: Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"] = "Pending"
    reason: str = ""
    message: str = ""
    start_time: datetime | None = None
    restart_count: int = 0
    """Restarts by the node; on Kubernetes summed from the container statuses."""
    pod_ip: str = Field(default="", alias="podIP")
    """Address of the pod on Kubernetes, once it has one."""


class Pod(PodModel):
    """A stage pod or an inference server."""

    api_version: Literal["v1"] = "v1"
    kind: Literal["Pod"] = "Pod"
    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus = Field(default_factory=PodStatus)
