"""Mathematical answers against references, in the real comparing process."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from rollout_crds.task import Grading, Task
from rollout_stages.errors import StageError
from rollout_stages.handlers.answers import final_answer
from rollout_stages.handlers.math import MathHandler
from rollout_stages.handlers.math_process import Comparison, MathProcess
from rollout_stages.handlers.protocol import ScoringContext
from tests.unit.stages.sandboxes import never


@pytest.fixture
async def process() -> AsyncIterator[MathProcess]:
    running = MathProcess(compare_seconds=20.0)
    yield running
    await running.aclose()


async def score(reference: str, answer: str | None, process: MathProcess) -> float:
    handler = MathHandler()
    handler._process = process
    task = Task(id="t", instruction="?", grading=Grading(answer=reference))
    verdict = await handler.score(ScoringContext(task, answer, None, never, never))
    return verdict.reward


async def test_equivalent_answers_score_one(process: MathProcess) -> None:
    pairs = [
        ("42", "so the answer is \\boxed{42}"),
        ("1/2", "\\boxed{\\frac{1}{2}}"),
        ("\\frac{1}{2}", "\\boxed{0.5}"),
        ("$x^2+2x+1$", "\\boxed{(x+1)^2}"),
        ("18", "Thinking...\nThe answer is 18."),
        ("18", "first 17\n18"),
        ("7", "<think>\\boxed{3}</think>It is \\boxed{7}"),
    ]
    scores = [await score(reference, answer, process) for reference, answer in pairs]
    assert scores == [1.0] * len(pairs), [p for p, s in zip(pairs, scores, strict=True) if not s]


async def test_wrong_and_missing_answers_score_zero(process: MathProcess) -> None:
    pairs = [("42", "\\boxed{43}"), ("42", "I do not know"), ("42", ""), ("42", None)]
    assert [await score(r, a, process) for r, a in pairs] == [0.0] * 4


EVALUATED = Path("/tmp/rollout-evaluated")


def was_evaluated() -> bool:
    return EVALUATED.exists()


async def test_text_of_the_model_is_not_evaluated(process: MathProcess) -> None:
    evil = "__import__('os').system('touch " + str(EVALUATED) + "')"
    assert await score("42", f"\\boxed{{{evil}}}", process) == 0.0
    assert await score("42", evil, process) == 0.0
    assert not was_evaluated()


async def test_answer_that_takes_too_long_is_given_up_and_the_next_one_works() -> None:
    process = MathProcess(compare_seconds=20.0)
    assert await process.compare("2", "2") is Comparison.EQUAL
    process._seconds = 1.0
    try:
        verdict = await process.compare("2", "9**9**9**9**9")
        assert verdict in {Comparison.GAVE_UP, Comparison.ANSWER_UNREADABLE, Comparison.DIFFERENT}
        process._seconds = 20.0
        assert await process.compare("2", "2") is Comparison.EQUAL
    finally:
        await process.aclose()


async def test_process_that_was_killed_is_replaced(process: MathProcess) -> None:
    assert await process.compare("2", "2") is Comparison.EQUAL
    assert process._child is not None
    process._child.kill()
    await process._child.wait()
    assert await process.compare("2", "3") is Comparison.DIFFERENT


async def test_unreadable_reference_is_the_tasks_fault(process: MathProcess) -> None:
    with pytest.raises(StageError, match=r"grading\.answer") as caught:
        await score("$$", "\\boxed{1}", process)
    assert (caught.value.reason, caught.value.retryable) == ("GraderFailed", False)


def test_task_without_reference_is_invalid() -> None:
    (problem,) = MathHandler().problems(Task(id="t", instruction="?"))
    assert problem.field == "grading.answer"


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("\\boxed{1} and \\boxed{2}", "\\boxed{2}"),
        ("\\boxed{\\text{a}b}", "\\boxed{\\text{a}b}"),
        ("\\boxed{1} and \\boxed{2", "\\boxed{1}"),
        ("one\n\ntwo\n", "two"),
        ("", None),
        ("<think>only thought", None),
    ],
)
def test_final_answer_is_the_last_box_or_line(text: str, answer: str | None) -> None:
    assert final_answer(text) == answer
