"""LLMPool: the inference backends that serve one model."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from rollout_crds.base import (
    API_VERSION,
    ApiVersion,
    Path,
    ResourceModel,
    ShortText,
    Text,
    matching,
)
from rollout_crds.meta import Condition, ObjectMeta
from rollout_crds.rolloutjob import EnvVar, Seconds


class Endpoint(ResourceModel):
    """An inference server that somebody else runs."""

    url: Annotated[
        str,
        matching(
            r"^(https?|unix)://",
            "must start with `http://`, `https://` or `unix:///`",
            max_length=2048,
        ),
    ]
    """`http://host:port`, `https://...`, or `unix:///path/to.sock`."""


class Launch(ResourceModel):
    """Inference servers that the operator runs."""

    model_path: Path
    """Model directory: absolute, or the name of one in the node's model directory."""
    replicas: Annotated[int, Field(ge=0, le=1024)] = 1
    args: Annotated[list[Text], Field(max_length=128)] = Field(default_factory=list)
    """Further arguments of the vLLM server."""
    env: Annotated[list[EnvVar], Field(max_length=64)] = Field(default_factory=list)
    startup_timeout_seconds: Seconds = 600
    """Time for a server to answer; after it the condition says so and the server is restarted."""


class LLMPoolSpec(ResourceModel):
    """A served model; exactly one of `endpoints` and `launch` is set."""

    engine: Literal["vllm"] = "vllm"
    model: ShortText
    """The name under which the servers serve the model."""
    tokenizer: Path | None = None
    """Directory with `tokenizer.json` and the chat template, readable where RUN workers run;
    absolute, or the name of one in the node's model directory. Unset: `launch.modelPath`."""
    logprobs_mode: Literal["processed_logprobs", "raw_logprobs"] = "processed_logprobs"
    """How the servers compute log-probs. Launched servers are started with it; of existing
    endpoints it states what they were started with."""
    endpoints: Annotated[list[Endpoint], Field(min_length=1, max_length=1024)] | None = None
    launch: Launch | None = None

    @model_validator(mode="after")
    def _one_kind_of_backend(self) -> "LLMPoolSpec":
        if (self.endpoints is None) == (self.launch is None):
            msg = "must set exactly one of `endpoints` and `launch`"
            raise ValueError(msg)
        if self.launch is None and self.tokenizer is None:
            msg = "must set `tokenizer` when `endpoints` is set: a directory with tokenizer.json"
            raise ValueError(msg)
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
    url: ShortText
    healthy: bool = False
    max_model_len: int | None = None
    """Longest context in tokens."""
    message: Annotated[str, Field(max_length=1024)] = ""
    """Why it is not healthy."""


class LLMPoolStatus(ResourceModel):
    """What the operator has observed."""

    conditions: Annotated[list[Condition], Field(max_length=16)] = Field(default_factory=list)
    observed_generation: int = 0
    backends: Annotated[list[Backend], Field(max_length=1024)] = Field(default_factory=list)
    healthy_backends: int = 0


class LLMPool(ResourceModel):
    """The inference backends that serve one model."""

    api_version: ApiVersion = API_VERSION
    kind: Literal["LLMPool"] = "LLMPool"
    metadata: ObjectMeta
    spec: LLMPoolSpec
    status: LLMPoolStatus = Field(default_factory=LLMPoolStatus)
