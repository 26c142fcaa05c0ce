"""What a task handler is.

A handler is a class without constructor arguments, installed under the entry point group
`rollout_operator.task_handlers`; the entry point's name is the `handler` of a RolloutJob.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue

from rollout_crds.task import Task
from rollout_crds.trajectory import Trajectory
from rollout_stages.ports import Sandbox


@dataclass(frozen=True)
class Problem:
    """Why a task cannot be used."""

    field: str
    """Path in the task, such as `grading.answer`."""
    message: str
    """What is wrong, and the remedy."""


@dataclass(frozen=True)
class Score:
    """A verdict."""

    reward: float
    components: Mapping[str, float] = field(default_factory=dict[str, float])
    details: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    """For people, such as the end of what the grader printed."""


@dataclass(frozen=True)
class ScoringContext:
    """What a scorer may look at."""

    task: Task
    answer: str | None
    """Last assistant message."""
    trajectory: Trajectory | None
    graded: Callable[[], AbstractAsyncContextManager[Sandbox]]
    """A fresh sandbox with the agent's artefact in it and the grading files over it."""
    untouched: Callable[[], AbstractAsyncContextManager[Sandbox]]
    """The same without the agent's artefact: tells a broken grader from a broken solution."""


class TaskHandler(Protocol):
    """A kind of task."""

    @property
    def system_prompt(self) -> str:
        """The system message, unless the job has its own; empty: none."""
        ...

    @property
    def artifacts(self) -> Sequence[str]:
        """Paths to carry to the grader, unless the task names its own."""
        ...

    def problems(self, task: Task) -> Sequence[Problem]:
        """What makes a task unusable; called in INIT, before anything is spent on it."""
        ...

    async def score(self, context: ScoringContext) -> Score:
        """Give the reward.

        A solution that is wrong, breaks or hangs is a reward of 0. A grader that cannot be run, or
        gives no verdict, is not: raise `StageError` with `GraderFailed`.
        """
        ...
