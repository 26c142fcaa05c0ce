"""The two bases of every model: camelCase resources for Kubernetes, snake_case data for RL code.

Both refuse unknown fields, so that a misspelt field is an error where it is written and not a
silent default where it is read.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

GROUP = "rollout-operator.dev"
VERSION = "v1alpha1"
ApiVersion = Literal["rollout-operator.dev/v1alpha1"]
API_VERSION: ApiVersion = "rollout-operator.dev/v1alpha1"

PATTERN_HINTS: dict[str, str] = {}
"""What a value that fails a pattern must be, in words; filled by `matching`."""


def matching(pattern: str, hint: str, *, max_length: int) -> Any:
    """A pattern with the words that tell a person who missed it what to write."""
    PATTERN_HINTS[pattern] = hint
    return Field(pattern=pattern, max_length=max_length)


DnsLabel = Annotated[
    str,
    matching(
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
        "must consist of lower-case letters, digits and `-`, without a `-` at either end",
        max_length=63,
    ),
]
"""A Kubernetes object name that is also a label value and a host name part."""

ShortText = Annotated[str, Field(min_length=1, max_length=256)]
Path = Annotated[str, Field(min_length=1, max_length=4096)]
Text = Annotated[str, Field(max_length=65_536)]
Decimal = Annotated[
    str,
    matching(
        r"^[0-9]{1,9}(\.[0-9]{1,9})?$",
        'must be a number that is not negative, written as a string, such as "0.7"',
        max_length=20,
    ),
]
"""A number with a fraction, written as a string: Kubernetes resources carry no floats."""

Fraction = Annotated[
    str,
    matching(
        r"^(0\.0*[1-9][0-9]*|1(\.0+)?)$",
        'must be above 0 and at most 1, written as a string, such as "0.95"',
        max_length=11,
    ),
]
"""A number above 0 and at most 1, written as a string."""

Url = Annotated[
    str,
    matching(
        r"^(https?|unix)://",
        "must start with `http://`, `https://` or `unix:///`",
        max_length=2048,
    ),
]

Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""A number of things that were counted; exact in every JSON reader."""


class ResourceModel(BaseModel):
    """Part of a Kubernetes resource: camelCase in JSON, unknown fields refused."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="forbid",
        populate_by_name=True,
        use_attribute_docstrings=True,
    )


class DataModel(BaseModel):
    """Part of a message or a record: snake_case in JSON, unknown fields refused, immutable.

    Parts of resources inside it, such as a spec or a job's progress, keep their camelCase. Numbers
    are finite, for JSON has no others.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, use_attribute_docstrings=True, allow_inf_nan=False
    )
