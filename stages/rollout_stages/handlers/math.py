r"""Mathematical tasks: the last `\boxed{...}` of the answer, or its last line, against a reference.

Answers are compared by math-verify, in a process of its own: symbolic comparison of what a model
wrote can take any time and memory, and must be killable. An answer that cannot be read, or takes
too long, is a reward of 0; a reference that cannot be read is the task's fault.
"""

from collections.abc import Sequence

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.task import Task
from rollout_stages.errors import StageError
from rollout_stages.handlers.answers import final_answer
from rollout_stages.handlers.math_process import Comparison, MathProcess
from rollout_stages.handlers.protocol import Problem, Score, ScoringContext


class MathHandler:
    """Handler `math`."""

    system_prompt = (
        "You solve mathematical problems. Reason step by step, use the tools for calculations if "
        "there are any, and give the final answer in \\boxed{}."
    )
    artifacts: Sequence[str] = ()

    def __init__(self) -> None:
        self._process = MathProcess()

    def problems(self, task: Task) -> Sequence[Problem]:
        """A reference answer is all it takes."""
        if task.grading.answer and task.grading.answer.strip():
            return ()
        return (Problem("grading.answer", "must be set: the reference answer"),)

    async def score(self, context: ScoringContext) -> Score:
        """1 if the answer is equivalent to the reference, else 0."""
        reference = context.task.grading.answer or ""
        answer = final_answer(context.answer or "")
        if answer is None:
            return Score(0.0, {"correct": 0.0}, {"answer": None, "verdict": "no answer"})
        comparison = await self._process.compare(reference, answer)
        if comparison is Comparison.REFERENCE_UNREADABLE:
            raise StageError(
                Boundary.TASK,
                FailureReason.GRADER_FAILED,
                f"task {context.task.id}: `grading.answer` {reference[:200]!r} cannot be read as a "
                "mathematical answer; write it as a number or in LaTeX",
                retryable=False,
            )
        correct = float(comparison is Comparison.EQUAL)
        return Score(correct, {"correct": correct}, {"answer": answer, "verdict": comparison.value})
