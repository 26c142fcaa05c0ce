"""LLMPool: the inference backends that serve one model."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from rollout_crds.base import (
    API_VERSION,
    ApiVersion,
    Count,
    Path,
    ResourceModel,
    ShortText,
    Text,
    Url,
)
from rollout_crds.markers import Cel, ListMap, rules
from rollout_crds.meta import Conditions, ObjectMeta
from rollout_crds.rolloutjob import EnvVar, Seconds


class Endpoint(ResourceModel):
    """An inference server that somebody else runs."""

    url: Url
    """`http://host:port`, `https://...`, or `unix:///path/to.sock`."""


class Launch(ResourceModel):
    """Inference servers that the operator runs."""

    model_path: Path
    """Model directory: absolute, or the name of one in the node's model directory."""
    replicas: Annotated[int, Field(ge=0, le=1024)] = 1
    """Number of servers."""
    args: Annotated[list[Text], Field(max_length=128)] = Field(default_factory=list)
    """Further arguments of the vLLM server."""
    env: Annotated[list[EnvVar], Field(max_length=64), ListMap("name")] = Field(
        default_factory=list
    )
    """Environment variables of the servers."""
    startup_timeout_seconds: Seconds = 600
    """Time for a server to answer; after it the condition says so and the server is restarted."""


_ONE_KIND = "must set exactly one of `endpoints` and `launch`"
_NO_TOKENIZER = "must set `tokenizer` when `endpoints` is set: a directory with tokenizer.json"


class LLMPoolSpec(ResourceModel):
    """A served model; exactly one of `endpoints` and `launch` is set."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Cel("has(self.endpoints) != has(self.launch)", _ONE_KIND),
            Cel("has(self.launch) || has(self.tokenizer)", _NO_TOKENIZER),
        )
    )

    engine: Literal["vllm"] = "vllm"
    """Inference engine."""
    model: ShortText
    """The name under which the servers serve the model."""
    tokenizer: Path | None = None
    """Directory with `tokenizer.json` and the chat template, readable where RUN workers run;
    absolute, or the name of one in the node's model directory. Unset: `launch.modelPath`."""
    logprobs_mode: Literal["processed_logprobs", "raw_logprobs"] = "processed_logprobs"
    """How the servers compute log-probs. Launched servers are started with it; of existing
    endpoints it states what they were started with."""
    endpoints: (
        Annotated[list[Endpoint], Field(min_length=1, max_length=1024), ListMap("url")] | None
    ) = None
    """Servers that already run, all serving the same model."""
    launch: Launch | None = None
    """Servers for the operator to run."""

    @model_validator(mode="after")
    def _one_kind_of_backend(self) -> "LLMPoolSpec":
        if (self.endpoints is None) == (self.launch is None):
            raise ValueError(_ONE_KIND)
        if self.launch is None and self.tokenizer is None:
            raise ValueError(_NO_TOKENIZER)
        return self

    @property
    def tokenizer_path(self) -> str:
        """The directory to load the tokenizer from."""
        if self.tokenizer is not None:
            return self.tokenizer
        assert self.launch is not None  # noqa: S101 - held by the validator
        return self.launch.model_path


class Backend(ResourceModel):
    """One inference server as last seen."""

    name: ShortText
    """Name of the server, unique in the pool."""
    url: Url
    """Where it answers."""
    healthy: bool = False
    """It answers and serves the model."""
    max_model_len: Count | None = None
    """Longest context in tokens."""
    message: Annotated[str, Field(max_length=1024)] = ""
    """Why it is not healthy."""


class LLMPoolStatus(ResourceModel):
    """What the operator has observed."""

    conditions: Conditions = Field(default_factory=list)
    """The latest observations; `Ready` sums them up."""
    observed_generation: Count = 0
    """`metadata.generation` that this status was computed from."""
    backends: Annotated[list[Backend], Field(max_length=1024), ListMap("name")] = Field(
        default_factory=list
    )
    """All servers of the pool."""
    healthy_backends: Count = 0
    """Number of servers that are healthy."""


class LLMPool(ResourceModel):
    """The inference backends that serve one model."""

    api_version: ApiVersion = API_VERSION
    kind: Literal["LLMPool"] = "LLMPool"
    metadata: ObjectMeta
    spec: LLMPoolSpec
    status: LLMPoolStatus = Field(default_factory=LLMPoolStatus)
