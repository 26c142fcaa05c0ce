"""INIT and EVAL over sandboxes in memory."""

from math import nan
from pathlib import Path
from typing import Any

import pytest

from rollout_crds.result import Stage
from rollout_crds.task import Task
from rollout_crds.wire import EvalDone, PreparedEnvironment, RunArtifact
from rollout_stages.blobs import FsspecBlobStore
from rollout_stages.errors import StageError
from rollout_stages.eval_stage import EvalStage
from rollout_stages.handlers.code import CodeHandler
from rollout_stages.handlers.protocol import Score, ScoringContext
from rollout_stages.init_stage import InitStage
from rollout_stages.ports import CommandResult
from tests.unit.stages.leases import job_spec, lease, work
from tests.unit.stages.sandboxes import LAYER, MemorySandbox, MemorySandboxes

PREPARED = PreparedEnvironment(image="/image", layer=LAYER)


def task(**fields: Any) -> Task:
    return Task.model_validate(
        {"id": "t", "instruction": "?", "grading": {"command": "make test"}, **fields}
    )


async def initialise(sandboxes: MemorySandboxes, of: Task, **spec: Any) -> PreparedEnvironment:
    leased = lease(Stage.INIT, of, job_spec(**spec))
    return (await InitStage(sandboxes).run(work(leased))).environment


async def test_nothing_to_set_up_makes_no_layer() -> None:
    sandboxes = MemorySandboxes()
    assert await initialise(sandboxes, task()) == PreparedEnvironment(image="/image")
    assert sandboxes.forks == []


async def test_files_and_commands_become_a_layer() -> None:
    sandboxes = MemorySandboxes()
    environment = {
        "image": "/other",
        "files": [{"path": "a.sh", "content": "x", "mode": 493}],
        "setup": ["one", "two"],
    }
    prepared = await initialise(sandboxes, task(environment=environment))
    assert prepared == PreparedEnvironment(image="/other", layer=LAYER)
    ((_, sandbox),) = sandboxes.forks
    assert sandbox.files == {"a.sh": ("x", 0o755)}
    assert sandbox.ran == ["one", "two"]
    assert sandbox.committed


async def test_failed_setup_command_is_the_tasks_fault_and_shows_its_output() -> None:
    sandboxes = MemorySandboxes(lambda _, c: CommandResult(f"{c}: no such thing", 7))
    with pytest.raises(StageError) as caught:
        await initialise(sandboxes, task(environment={"setup": ["make all"]}))
    failure = caught.value.failure(Stage.INIT, 1)
    assert (failure.reason, failure.boundary, failure.retryable) == ("SetupFailed", "task", False)
    assert "`environment.setup[0]` exited with 7: make all" in failure.message
    assert "no such thing" in failure.message
    assert not sandboxes.forks[0][1].committed


async def test_task_that_cannot_be_graded_is_refused_before_anything_runs() -> None:
    with pytest.raises(StageError, match=r"task t: `grading\.command` must be set") as caught:
        await initialise(MemorySandboxes(), task(grading={}))
    assert caught.value.reason == "InvalidTask"


async def test_demonstration_without_text_is_refused() -> None:
    with pytest.raises(StageError, match="`demonstration` must not be empty"):
        await initialise(MemorySandboxes(), task(), agent={"decoding": "demonstration"})


async def test_unknown_handler_names_the_installed_ones() -> None:
    with pytest.raises(StageError, match=r"'magic' is installed .*code, math") as caught:
        await initialise(MemorySandboxes(), task(), handler="magic")
    assert caught.value.reason == "UnknownHandler"


async def evaluate(
    sandboxes: MemorySandboxes, tmp_path: Path, files: bytes = b"{}", **fields: Any
) -> EvalDone:
    blobs = FsspecBlobStore(f"file://{tmp_path}")
    artifact = RunArtifact(answer="done", files=await blobs.put(files))
    leased = lease(Stage.EVAL, task(**fields), job_spec(), environment=PREPARED, artifact=artifact)
    return await EvalStage(sandboxes, blobs).run(work(leased))


async def test_grading_files_lie_over_the_artifact(tmp_path: Path) -> None:
    sandboxes = MemorySandboxes()
    grading = {"command": "make test", "files": [{"path": "test.py", "content": "honest"}]}
    files = b'{"test.py": ["cheated", 420], "solution.py": ["s", 420]}'
    done = await evaluate(sandboxes, tmp_path, files, grading=grading)
    ((environment, sandbox),) = sandboxes.forks
    assert environment == PREPARED
    assert sandbox.files == {"test.py": ("honest", 0o644), "solution.py": ("s", 0o644)}
    assert done.reward == 1.0


@pytest.mark.parametrize(
    "result", [CommandResult("failed", 1), CommandResult("", 137, timed_out=True)]
)
async def test_failing_or_hanging_tests_are_a_reward_of_zero(
    result: CommandResult, tmp_path: Path
) -> None:
    done = await evaluate(MemorySandboxes(lambda _, __: result), tmp_path)
    assert done.reward == 0.0
    assert done.details["timed_out"] == result.timed_out


async def test_grader_that_cannot_run_anywhere_is_no_reward(tmp_path: Path) -> None:
    sandboxes = MemorySandboxes(lambda _, __: CommandResult("make: command not found", 127))
    with pytest.raises(StageError, match="command not found") as caught:
        await evaluate(sandboxes, tmp_path)
    assert (caught.value.reason, caught.value.where) == ("GraderFailed", "task")
    assert len(sandboxes.forks) == 2


async def test_grader_that_only_the_agents_files_break_is_a_reward_of_zero(tmp_path: Path) -> None:
    def answer(sandbox: MemorySandbox, _: str) -> CommandResult:
        return CommandResult("", 127 if "broken" in sandbox.files else 0)

    done = await evaluate(MemorySandboxes(answer), tmp_path, b'{"broken": ["", 420]}')
    assert done.reward == 0.0


async def test_score_that_is_no_number_is_no_reward(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def divide(_: CodeHandler, __: ScoringContext) -> Score:
        return Score(reward=nan)

    monkeypatch.setattr(CodeHandler, "score", divide)
    with pytest.raises(StageError, match="finite number") as caught:
        await evaluate(MemorySandboxes(), tmp_path)
    assert (caught.value.reason, caught.value.retryable) == ("GraderFailed", False)
