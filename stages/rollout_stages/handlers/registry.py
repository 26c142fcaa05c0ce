"""Finds task handlers by name among the installed entry points."""

from importlib.metadata import entry_points

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.rolloutjob import RolloutSpec
from rollout_crds.task import Task
from rollout_stages.errors import StageError
from rollout_stages.handlers.protocol import Problem, TaskHandler

GROUP = "rollout_operator.task_handlers"


class Handlers:
    """The task handlers of a worker: each is looked for and made once."""

    def __init__(self) -> None:
        self._made: dict[str, TaskHandler] = {}

    def find(self, name: str) -> TaskHandler:
        """The handler of that name.

        Raises:
            StageError: `UnknownHandler`; the message lists those that are installed.
        """
        if name not in self._made:
            self._made[name] = _make(name)
        return self._made[name]


def _make(name: str) -> TaskHandler:
    installed = entry_points(group=GROUP)
    if name not in installed.names:
        known = ", ".join(sorted(installed.names)) or "none"
        raise StageError(
            Boundary.TASK,
            FailureReason.UNKNOWN_HANDLER,
            f"no task handler {name!r} is installed on this worker (installed: {known}); set "
            f"`handler` to one of them or install a package with an entry point in {GROUP}",
            retryable=False,
        )
    handler: TaskHandler = installed[name].load()()
    return handler


def check_task(handler: TaskHandler, task: Task, spec: RolloutSpec) -> None:
    """Refuse a task that cannot be run or graded.

    Raises:
        StageError: `InvalidTask`; the message names each field and the remedy.
    """
    problems = list(handler.problems(task))
    if spec.agent.decoding == "demonstration" and not task.demonstration:
        problems.append(
            Problem("demonstration", "must not be empty with `agent.decoding: demonstration`")
        )
    if problems:
        listed = "; ".join(f"`{problem.field}` {problem.message}" for problem in problems)
        raise StageError(
            Boundary.TASK, FailureReason.INVALID_TASK, f"task {task.id}: {listed}", retryable=False
        )
