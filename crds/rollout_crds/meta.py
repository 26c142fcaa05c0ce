"""Object metadata and conditions, as Kubernetes defines them.

Kubernetes owns these two schemas, so metadata keeps fields that it does not know.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from rollout_crds.base import Count, DnsLabel, ResourceModel, ShortText, matching
from rollout_crds.markers import ListMap

LabelKey = Annotated[
    str,
    matching(
        r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$",
        "the key of a label must be a name of at most 63 letters, digits and `- _ .`, with or "
        "without a `domain/` in front",
        max_length=317,
    ),
]
LabelValue = Annotated[
    str,
    matching(
        r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$",
        "must consist of letters, digits and `- _ .`, with a letter or digit at either end",
        max_length=63,
    ),
]


class OwnerReference(ResourceModel):
    """The object that this one belongs to and is deleted with."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = True
    block_owner_deletion: bool = True


class ObjectMeta(ResourceModel):
    """Identity of an object; `uid` and what follows are set by the store, not by users."""

    model_config = ConfigDict(alias_generator=to_camel, extra="allow", populate_by_name=True)

    name: DnsLabel
    namespace: DnsLabel = "default"
    labels: dict[LabelKey, LabelValue] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    uid: str = ""
    generation: int = 0
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    finalizers: list[str] = Field(default_factory=list)
    owner_references: list[OwnerReference] = Field(default_factory=list)


class Condition(ResourceModel):
    """One observed fact about a resource, in the form of `metav1.Condition`."""

    type: ShortText
    """Adjective or past participle, such as `Accepted` or `Succeeded`."""
    status: Literal["True", "False", "Unknown"]
    """`Unknown` until the operator has seen enough to tell."""
    reason: Annotated[str, Field(pattern=r"^[A-Z][A-Za-z0-9]*$", max_length=128)]
    """One CamelCase word for the cause; the documented list is in `rollout_crds.reasons`."""
    message: Annotated[str, Field(max_length=4096)] = ""
    """The cause in a sentence for people, with the remedy where there is one."""
    observed_generation: Count = 0
    """`metadata.generation` that this condition was computed from."""
    last_transition_time: datetime
    """When `status` last changed."""


Conditions = Annotated[list[Condition], Field(max_length=16), ListMap("type")]
