"""RolloutJob: a batch of groups of rollouts, from tasks to scored token trajectories."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import ConfigDict, Field, model_validator

from rollout_crds.base import (
    API_VERSION,
    ApiVersion,
    Count,
    Decimal,
    DnsLabel,
    Fraction,
    Path,
    ResourceModel,
    ShortText,
    Text,
    matching,
)
from rollout_crds.markers import Cel, ListMap, ListSet, rules
from rollout_crds.meta import Conditions, ObjectMeta
from rollout_crds.placement import Placement
from rollout_crds.progress import JobProgress
from rollout_crds.task import Task

Seconds = Annotated[int, Field(ge=1, le=31_536_000)]

ToolName = Literal["bash", "ipython"]


class LocalObjectReference(ResourceModel):
    """Names an object in the same namespace."""

    name: DnsLabel
    """Name of the object."""


class TaskSource(ResourceModel):
    """Where the tasks come from; exactly one field is set."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Cel("has(self.inline) != has(self.uri)", "must set exactly one of `inline` and `uri`")
        )
    )

    inline: Annotated[list[Task], Field(min_length=1, max_length=256), ListMap("id")] | None = None
    """The tasks themselves, for small jobs."""
    uri: Path | None = None
    """A JSONL file with one task a line: `file:///path` or another URL that fsspec reads.
    `rolloutctl` resolves a relative path against the folder of the manifest."""

    @model_validator(mode="after")
    def _exactly_one(self) -> "TaskSource":
        if (self.inline is None) == (self.uri is None):
            msg = "must set exactly one of `inline` and `uri`"
            raise ValueError(msg)
        return self


class Agent(ResourceModel):
    """The built-in agent: a multi-turn loop of model calls and tool calls."""

    tools: Annotated[list[ToolName], Field(max_length=8), ListSet()] = ["bash"]
    """Tools that the model may call, inside the sandbox: `bash`, a persistent shell, and
    `ipython`, a persistent Python session. Empty: the model only answers."""
    system_prompt: Text | None = None
    """Replaces the handler's system message; the tool descriptions are still added."""
    decoding: Literal["sampled", "demonstration"] = "sampled"
    """`demonstration` forces each turn to the text in the task's `demonstration`: it proves a
    task and its grader with the real engine. Such trajectories are never trainable."""


class Sampling(ResourceModel):
    """Sampling parameters, sent with every model call and recorded with it."""

    temperature: Decimal = "1.0"
    """0 decodes greedily, which makes trajectories not trainable."""
    top_p: Fraction = "1.0"
    """Below 1 the log-probs are those of a truncated distribution: not trainable."""
    top_k: Annotated[int, Field(ge=-1, le=1_000_000)] = -1
    """-1 for no limit; any other value makes trajectories not trainable."""
    max_tokens: Annotated[int, Field(ge=1, le=1_048_576)] = 1024
    """Most output tokens of one model call."""
    seed: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None
    """Base seed; call c of sample s derives its own from it. Unset: the engine draws."""
    stop: Annotated[list[ShortText], Field(max_length=16)] = Field(default_factory=list)
    """Texts that end a model call when they are generated."""


class LLM(ResourceModel):
    """The model that drives the agent, and the limits of a rollout in turns and tokens."""

    pool_ref: LocalObjectReference
    """The LLMPool that serves the model."""
    sampling: Sampling = Field(default_factory=Sampling)
    max_context_tokens: Annotated[int, Field(ge=16, le=10_000_000)] = 4096
    """Prompt and output of a model call together stay below this."""
    max_turns: Annotated[int, Field(ge=1, le=10_000)] = 16
    """Most model calls of one rollout."""


class EnvVar(ResourceModel):
    """An environment variable."""

    name: Annotated[
        str,
        matching(
            r"^[A-Za-z_][A-Za-z0-9_]*$",
            "must consist of letters, digits and `_`, and not start with a digit",
            max_length=128,
        ),
    ]
    """Name of the variable."""
    value: Text = ""
    """Value, taken literally."""


class SandboxResources(ResourceModel):
    """Limits of one sandbox."""

    memory_mebibytes: Annotated[int, Field(ge=16, le=16_777_216)] = 4096
    """Memory of all its processes together, in MiB."""
    processes: Annotated[int, Field(ge=4, le=1_000_000)] = 512
    """Most processes and threads at a time."""
    open_files: Annotated[int, Field(ge=16, le=1_048_576)] = 1024
    """Most open files of one process."""
    disk_mebibytes: Annotated[int, Field(ge=16, le=16_777_216)] = 10_240
    """What it may write to disk, in MiB; a sandbox over it is ended, and the agent is to blame."""
    output_kibibytes: Annotated[int, Field(ge=1, le=1_048_576)] = 64
    """Most output of one tool call that is kept, in KiB: its head and tail, with a note between."""
    action_timeout_seconds: Seconds = 60
    """Wall time of one tool call; the model is told when it is exceeded."""


class Sandbox(ResourceModel):
    """The sandbox of each rollout."""

    image: ShortText
    """A SIF file or root file system directory by absolute path, a `docker-archive:`, `oci:` or
    `oci-archive:` source, or the plain name of an image in the node's image directory."""
    network: Literal["none"] = "none"
    """What the sandbox can reach; `none`: nothing but itself."""
    env: Annotated[list[EnvVar], Field(max_length=64), ListMap("name")] = Field(
        default_factory=list
    )
    """Environment variables of the tools and of set-up and grading commands."""
    workdir: Annotated[
        str, matching(r"^/", "must be an absolute path inside the sandbox", max_length=4096)
    ] = "/workspace"
    """Working directory of the tools and of set-up and grading commands."""
    resources: SandboxResources = Field(default_factory=SandboxResources)


class StageSpec(ResourceModel):
    """The pool of stage pods of one stage."""

    replicas: Annotated[int, Field(ge=0, le=10_000)] = 1
    """Number of stage pods; with 0 no unit of this stage is worked on."""
    concurrency: Annotated[int, Field(ge=1, le=4096)] = 2
    """Leases that one stage pod works on at once."""
    active_deadline_seconds: Seconds = 1800
    """Active time of one attempt; waiting in a queue does not count."""


class RunStageSpec(StageSpec):
    """The pool of RUN pods, which mostly wait for the engine."""

    concurrency: Annotated[int, Field(ge=1, le=4096)] = 8
    """Leases that one stage pod works on at once."""


class Stages(ResourceModel):
    """The three stage pools, which overlap: a rollout moves on as soon as its own stage ends."""

    init: StageSpec = Field(default_factory=StageSpec)
    """Prepares the environment of each group."""
    run: RunStageSpec = Field(default_factory=RunStageSpec)
    """Runs the agents."""
    eval: StageSpec = Field(default_factory=StageSpec)
    """Grades the results."""


class Groups(ResourceModel):
    """Rules for the group of rollouts of one task."""

    minimum_usable_samples: Annotated[int, Field(ge=1, le=4096)] = 1
    """Scored rollouts below which a group counts as failed."""


class Retry(ResourceModel):
    """What happens to a stage that fails for a retryable, infrastructural reason."""

    max_attempts: Annotated[int, Field(ge=1, le=100)] = 4
    """Attempts of one stage of one rollout, the first included."""
    backoff_seconds: Annotated[int, Field(ge=0, le=3600)] = 1
    """Wait before the second attempt; doubles with each further one, up to 60 s."""


_TOO_FEW_SAMPLES = "`groups.minimumUsableSamples` must be less than or equal to `samplesPerTask`"


class RolloutSpec(ResourceModel):
    """How rollouts are made, whatever their tasks: a job's spec as stage workers see it."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Cel("self.groups.minimumUsableSamples <= self.samplesPerTask", _TOO_FEW_SAMPLES)
        )
    )

    handler: DnsLabel
    """Name of the task handler: `math`, `code`, or one installed as an entry point."""
    samples_per_task: Annotated[int, Field(ge=1, le=4096)] = 1
    """Rollouts per group."""
    agent: Agent = Field(default_factory=Agent)
    llm: LLM
    sandbox: Sandbox
    stages: Stages = Field(default_factory=Stages)
    """Ignored with `poolRef`."""
    pool_ref: LocalObjectReference | None = None
    """A warm RolloutPool to run in; unset: the job gets stage pods of its own."""
    placement: Placement | None = None
    """Where the stage pods run; unset: on the operator's own cluster. Ignored with `poolRef`."""
    groups: Groups = Field(default_factory=Groups)
    retry: Retry = Field(default_factory=Retry)
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    """Leases of a job with a higher priority are given first."""
    active_deadline_seconds: Seconds | None = None
    """Seconds after its start at which the job is ended; what is scored by then is kept."""
    pre_running_deadline_seconds: Seconds | None = None
    """Seconds that the job may wait for its LLMPool and stage pods before it fails."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=315_360_000)] | None = None
    """Seconds after its end at which the job and its records are deleted; unset: never."""
    suspended: bool = False
    """While true no new lease is given and stage pods are removed; leased work is handed back."""
    managed_by: ShortText | None = None
    """Another controller that owns this job; ours leaves it alone. Immutable."""

    @model_validator(mode="after")
    def _enough_samples(self) -> Self:
        if self.groups.minimum_usable_samples > self.samples_per_task:
            raise ValueError(_TOO_FEW_SAMPLES)
        return self


class RolloutJobSpec(RolloutSpec):
    """What a trainer wants rolled out."""

    tasks: TaskSource


class RolloutJobStatus(ResourceModel):
    """What the operator has observed."""

    conditions: Conditions = Field(default_factory=list)
    """The latest observations; `Succeeded` sums them up."""
    observed_generation: Count = 0
    """`metadata.generation` that this status was computed from."""
    progress: JobProgress = Field(default_factory=JobProgress)
    start_time: datetime | None = None
    """When the first lease became possible: submitted, LLMPool ready, stage pods there."""
    completion_time: datetime | None = None
    """When `Succeeded` became True or False."""


class RolloutJob(ResourceModel):
    """A batch of groups of rollouts: tasks in, scored token trajectories out."""

    api_version: ApiVersion = API_VERSION
    kind: Literal["RolloutJob"] = "RolloutJob"
    metadata: ObjectMeta
    spec: RolloutJobSpec
    status: RolloutJobStatus = Field(default_factory=RolloutJobStatus)
