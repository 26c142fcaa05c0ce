"""Coding tasks: the agent changes files, and a command that exits with 0 says that it did well.

The grading command runs in a fresh fork of the prepared environment that holds the agent's
working directory, with the task's grading files written over it. If it fails or runs out of time,
the reward is 0: the agent's code is under test. Exit codes 126 and 127 say that the command could
not be run. It is then tried without the agent's files too; only if it cannot run there either is
the grader to blame.
"""

from collections.abc import Sequence

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.task import Task
from rollout_stages.errors import StageError
from rollout_stages.handlers.protocol import Problem, Score, ScoringContext
from rollout_stages.ports import CommandResult, Sandbox

_CANNOT_RUN = frozenset({126, 127})
_KEPT_OUTPUT = 4096


class CodeHandler:
    """Handler `code`."""

    system_prompt = (
        "You are a software engineer. Solve the task by working in the current directory with the "
        "tools. When you are done, answer with a short summary and without a tool call."
    )
    artifacts: Sequence[str] = (".",)

    def problems(self, task: Task) -> Sequence[Problem]:
        """A grading command is all it takes."""
        if task.grading.command and task.grading.command.strip():
            return ()
        remedy = "must be set: a shell command that exits with 0 if the task is solved"
        return (Problem("grading.command", remedy),)

    async def score(self, context: ScoringContext) -> Score:
        """1 if the grading command exits with 0, else 0."""
        async with context.graded() as sandbox:
            result = await _grade(sandbox, context.task)
        if result.exit_code in _CANNOT_RUN:
            await _blame(context, result)
        solved = result.exit_code == 0 and not result.timed_out
        return Score(
            reward=float(solved),
            components={"solved": float(solved)},
            details={
                "exit_code": result.exit_code,
                "timed_out": result.timed_out,
                "output": result.output[-_KEPT_OUTPUT:],
            },
        )


async def _grade(sandbox: Sandbox, task: Task) -> CommandResult:
    return await sandbox.command(task.grading.command or "", task.grading.timeout_seconds)


async def _blame(context: ScoringContext, result: CommandResult) -> None:
    """Raise if the grading command cannot be run even where the agent changed nothing."""
    async with context.untouched() as sandbox:
        clean = await _grade(sandbox, context.task)
    if clean.exit_code in _CANNOT_RUN:
        raise StageError(
            Boundary.TASK,
            FailureReason.GRADER_FAILED,
            f"task {context.task.id}: `grading.command` cannot be run (exit code "
            f"{clean.exit_code}): {clean.output[-500:].strip()}",
            retryable=False,
        )
