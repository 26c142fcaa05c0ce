"""A task: what the agent is asked, what it finds in its sandbox, and how the result is graded.

Grading is a part of its own because the agent's side of the system never sees it: a RUN lease
carries a task without `grading`, and only an EVAL sandbox receives the files in it.
"""

from typing import Annotated

from pydantic import Field, JsonValue

from rollout_crds.base import Path, ResourceModel, ShortText, Text, matching
from rollout_crds.markers import ListMap

TaskId = Annotated[
    str,
    matching(
        r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$",
        "must start with a letter or digit and go on with letters, digits and `. _ : / -`",
        max_length=200,
    ),
]


class TaskFile(ResourceModel):
    """A text file to put into the sandbox."""

    path: Path
    """Absolute, or relative to the working directory."""
    content: Annotated[str, Field(max_length=1_048_576)] = ""
    """Text of the file."""
    mode: Annotated[int, Field(ge=0, le=0o7777)] = 0o644
    """Permission bits as a decimal integer: 420 is 0644, 493 is 0755."""


TaskFiles = Annotated[list[TaskFile], Field(max_length=256), ListMap("path")]


class Environment(ResourceModel):
    """What INIT prepares once for all samples of the task."""

    image: ShortText | None = None
    """Replaces the job's `sandbox.image` for this task."""
    files: TaskFiles = Field(default_factory=list)
    """Written before `setup` runs."""
    setup: Annotated[list[Text], Field(max_length=64)] = Field(default_factory=list)
    """Shell commands; one that exits non-zero fails the group as a task error."""


class Grading(ResourceModel):
    """What EVAL needs to score; never shown to the agent or to its sandbox."""

    answer: Text | None = None
    """Reference answer, for handlers that compare answers."""
    files: TaskFiles = Field(default_factory=list)
    """Written over the artefact before `command` runs: the tests."""
    command: Text | None = None
    """Shell command whose exit code 0 means solved, for handlers that run tests."""
    timeout_seconds: Annotated[int, Field(ge=1, le=86_400)] = 600
    """Wall time of `command`; running out of it means not solved."""
    artifacts: Annotated[list[Path], Field(max_length=64)] = Field(default_factory=list)
    """What is carried from the agent's sandbox to the grading one; empty: the handler's choice."""


class Task(ResourceModel):
    """One task, which becomes one group of `samplesPerTask` rollouts."""

    id: TaskId
    """Unique within the job."""
    instruction: Annotated[str, Field(min_length=1, max_length=262_144)]
    """The first user message."""
    environment: Environment = Field(default_factory=Environment)
    """What the agent finds in its sandbox."""
    grading: Grading = Field(default_factory=Grading)
    """How the result is graded."""
    demonstration: Annotated[list[Text], Field(max_length=256)] = Field(default_factory=list)
    """Assistant turns that solve the task, for `agent.decoding: demonstration`."""
    metadata: Annotated[dict[str, JsonValue], Field(max_length=64)] = Field(default_factory=dict)
    """Passed through to the trajectory unchanged."""

    def without_grading(self) -> "Task":
        """The task as the agent's side may see it: of grading, only what is to be carried over."""
        carried = Grading(artifacts=self.grading.artifacts)
        return self.model_copy(update={"grading": carried})
