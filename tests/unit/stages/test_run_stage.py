"""RUN over a scripted engine and sandboxes in memory."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rollout_crds.llmpool import LLMPoolSpec
from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary, Stage
from rollout_crds.task import Task
from rollout_crds.wire import LLMBackend, PreparedEnvironment, RunDone, StageFailed, StageResult
from rollout_stages.blobs import FsspecBlobStore
from rollout_stages.errors import StageError
from rollout_stages.execution import execute
from rollout_stages.ports import Generation, Prompt
from rollout_stages.run_stage import RunStage
from tests.unit.stages.leases import job_spec, lease, work
from tests.unit.stages.sandboxes import MemorySandboxes
from tests.unit.stages.test_conversation_tokens import CHATML_WITH_TOOLS, byte_tokenizer, ids_of
from tests.unit.stages.test_model_calls import ScriptedEngine, generation

CALL = '<tool_call>\n{"name": "bash", "arguments": {"command": "ls"}}\n</tool_call>'


class OneEngine(ScriptedEngine):
    """The engine of every URL; gone, or hanging, when its script ends."""

    hangs_at_the_end = False

    def at(self, url: str, pool: LLMPoolSpec) -> "OneEngine":
        del url, pool
        return self

    async def generate(self, prompt: Prompt, deadline: float) -> Generation:
        if not self.generations and self.hangs_at_the_end:
            await asyncio.sleep(60)
        if not self.generations:
            raise StageError(
                Boundary.MODEL, FailureReason.MODEL_UNAVAILABLE, "gone", retryable=True
            )
        return await super().generate(prompt, deadline)


@pytest.fixture
def models(tmp_path: Path) -> Path:
    directory = tmp_path / "models" / "tiny"
    directory.mkdir(parents=True)
    byte_tokenizer().save(str(directory / "tokenizer.json"))
    (directory / "chat_template.jinja").write_text(CHATML_WITH_TOOLS)
    return tmp_path / "models"


async def run(
    models: Path,
    *turns: str,
    tokenizer: str = "tiny",
    hangs_at_the_end: bool = False,
    active_deadline_seconds: int = 100,
    **spec: Any,
) -> StageResult:
    engine = OneEngine(*(generation(ids_of(f"{text}<|im_end|>")) for text in turns))
    engine.hangs_at_the_end = hangs_at_the_end
    blobs = FsspecBlobStore(f"file://{models.parent}/blobs")
    pool = LLMPoolSpec.model_validate(
        {"model": "m", "tokenizer": tokenizer, "endpoints": [{"url": "unix:///e"}]}
    )
    leased = lease(
        Stage.RUN,
        Task(id="t", instruction="fix it"),
        job_spec(**spec),
        environment=PreparedEnvironment(image="/image"),
        backend=LLMBackend(name="b0", url="unix:///e", pool=pool),
        sample_index=1,
        active_deadline_seconds=active_deadline_seconds,
    )
    return await execute(RunStage(MemorySandboxes(), engine, blobs, models), work(leased))


async def test_trajectory_and_artifact_are_handed_on(models: Path) -> None:
    done = await run(models, CALL, "all done")
    assert isinstance(done, RunDone)
    assert done.trajectory.stop_reason == "finished"
    assert [c.backend for c in done.trajectory.calls] == ["b0", "b0"]
    assert done.artifact.answer == "all done"
    assert done.artifact.files is not None
    blob = models.parent / "blobs" / done.artifact.files.sha256
    assert json.loads(blob.read_bytes()) == {}


async def test_system_message_is_the_handlers_unless_the_job_has_one(models: Path) -> None:
    done = await run(models, "done")
    own = await run(models, "done", agent={"systemPrompt": "mine"})
    none = await run(models, "done", agent={"systemPrompt": ""})
    assert isinstance(done, RunDone)
    assert isinstance(own, RunDone)
    assert isinstance(none, RunDone)
    assert done.trajectory.messages[0].content.startswith("You are a software engineer")
    assert own.trajectory.messages[0].content == "mine"
    assert [m.role for m in none.trajectory.messages] == ["user", "assistant"]


async def test_failure_keeps_the_calls_that_were_made(models: Path) -> None:
    failed = await run(models, CALL)
    assert isinstance(failed, StageFailed)
    assert failed.failure.reason == "ModelUnavailable"
    assert failed.trajectory is not None
    assert failed.trajectory.stop_reason == "failed"
    assert len(failed.trajectory.calls) == 1
    assert failed.trajectory.messages[-1].role == "tool"


async def test_active_deadline_keeps_the_calls_that_were_made(models: Path) -> None:
    failed = await run(models, CALL, hangs_at_the_end=True, active_deadline_seconds=1)
    assert isinstance(failed, StageFailed)
    assert failed.failure.reason == "StageDeadlineExceeded"
    assert failed.trajectory is not None
    assert failed.trajectory.stop_reason == "deadline"
    assert len(failed.trajectory.calls) == 1


async def test_unusable_tokenizer_names_the_file(models: Path) -> None:
    failed = await run(models, tokenizer="missing")
    assert isinstance(failed, StageFailed)
    assert (failed.failure.reason, failed.failure.boundary) == ("TokenizerUnusable", "model")
    assert f"{models}/missing/tokenizer.json does not exist" in failed.failure.message
