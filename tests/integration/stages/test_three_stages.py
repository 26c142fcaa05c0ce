"""A coding task through INIT, RUN and EVAL with a real sandbox and a real engine."""

from typing import Any

import pytest

from rollout_crds.llmpool import LLMPoolSpec
from rollout_crds.result import Stage
from rollout_crds.rolloutjob import RolloutSpec
from rollout_crds.task import Task
from rollout_crds.trajectory import provenance_issues, segments
from rollout_crds.wire import InitDone, LLMBackend, RunDone
from rollout_stages.blobs import FsspecBlobStore
from rollout_stages.engine.client import VLLMEngines
from rollout_stages.eval_stage import EvalStage
from rollout_stages.init_stage import InitStage
from rollout_stages.run_stage import RunStage
from rollout_stages.sandboxes import NodeSandboxes
from rollout_stages.tokens.conversation import ChatTokenizer
from tests.support.engine import Engine
from tests.support.recording_proxy import RecordingProxy
from tests.unit.stages.leases import lease, work

pytestmark = [pytest.mark.engine, pytest.mark.sandbox, pytest.mark.timeout(300)]

FIX = "sed -i 's/a - b/a + b/' calc.py && cat calc.py"
TASK = Task.model_validate(
    {
        "id": "calc",
        "instruction": "add() in calc.py is wrong. Fix it.",
        "environment": {
            "files": [{"path": "calc.py", "content": "def add(a, b):\n    return a - b\n"}],
            "setup": ["echo prepared > marker && mkdir -p /opt/data && echo 1 > /opt/data/x"],
        },
        "grading": {
            "command": "cat /opt/data/x marker && python3 test_calc.py",
            "files": [
                {
                    "path": "test_calc.py",
                    "content": "from calc import add\nassert add(2, 3) == 5, add(2, 3)\n",
                }
            ],
        },
        "demonstration": [
            '<tool_call>\n{"name": "bash", "arguments": {"command": "cat calc.py"}}\n</tool_call>',
            f'<tool_call>\n{{"name": "bash", "arguments": {{"command": "{FIX}"}}}}\n</tool_call>'
            '\n<tool_call>\n{"name": "ipython", "arguments": {"code": "6 * 7"}}\n</tool_call>',
            "Fixed: add() adds now.",
        ],
    }
)


class Pipeline:
    """The three stages over one sandbox runtime and one engine."""

    def __init__(
        self,
        spec: RolloutSpec,
        sandboxes: NodeSandboxes,
        blobs: FsspecBlobStore,
        engine: Engine,
        url: str,
    ) -> None:
        self.spec = spec
        self.engines = VLLMEngines()
        self.init = InitStage(sandboxes)
        self.runner = RunStage(sandboxes, self.engines, blobs, engine.folder.parent)
        self.scorer = EvalStage(sandboxes, blobs)
        pool = LLMPoolSpec(
            model=engine.model,
            tokenizer=str(engine.folder),
            endpoints=[{"url": url}],  # type: ignore[list-item]
        )
        self.backend = LLMBackend(name="b0", url=url, pool=pool, max_model_len=4096)

    async def prepare(self) -> InitDone:
        return await self.init.run(work(lease(Stage.INIT, TASK, self.spec)))

    async def run(self, prepared: InitDone) -> RunDone:
        leased = lease(
            Stage.RUN,
            TASK.without_grading(),
            self.spec,
            environment=prepared.environment,
            backend=self.backend,
            sample_index=0,
        )
        return await self.runner.run(work(leased))

    async def score(self, prepared: InitDone, done: RunDone) -> Any:
        leased = lease(
            Stage.EVAL, TASK, self.spec, environment=prepared.environment, artifact=done.artifact
        )
        return await self.scorer.run(work(leased))


@pytest.fixture
async def pipeline(
    spec: RolloutSpec,
    sandboxes: NodeSandboxes,
    blobs: FsspecBlobStore,
    tiny_engine: Engine,
    recorded_engine: RecordingProxy,
) -> Any:
    built = Pipeline(spec, sandboxes, blobs, tiny_engine, recorded_engine.url)
    yield built
    await built.engines.aclose()


def demonstrate(spec: RolloutSpec) -> RolloutSpec:
    agent = spec.agent.model_copy(update={"decoding": "demonstration"})
    return spec.model_copy(update={"agent": agent})


@pytest.mark.parametrize("refused", [set(), {"/inference/v1/generate"}], ids=["generate", "old"])
async def test_demonstrated_fix_scores_one_and_the_record_is_what_the_engine_returned(
    pipeline: Pipeline, recorded_engine: RecordingProxy, tiny_engine: Engine, refused: set[str]
) -> None:
    pipeline.spec = demonstrate(pipeline.spec)
    recorded_engine.refuse_paths = refused
    prepared = await pipeline.prepare()
    done = await pipeline.run(prepared)
    scored = await pipeline.score(prepared, done)

    assert scored.reward == 1.0, scored.details
    assert "prepared" in scored.details["output"]
    trajectory = done.trajectory
    assert trajectory.stop_reason == "finished"
    assert len(trajectory.calls) == 3
    tool_messages = [m.content for m in trajectory.messages if m.role == "tool"]
    assert "return a - b" in tool_messages[0]
    assert "return a + b" in tool_messages[1]
    assert "42" in tool_messages[2]

    assert_recorded_as_returned(trajectory, recorded_engine)
    (segment,) = segments(trajectory.calls)
    assert segment.calls == (0, 1, 2)
    assert provenance_issues(trajectory) == ("forced_decoding",)
    assert_retokenising_would_differ(trajectory, tiny_engine)


def assert_recorded_as_returned(trajectory: Any, proxy: RecordingProxy) -> None:
    assert len(trajectory.calls) == len(proxy.exchanges)
    for call, (request, answer) in zip(trajectory.calls, proxy.exchanges, strict=True):
        choice = answer["choices"][0]
        prompt = answer.get("prompt_token_ids") or choice["prompt_token_ids"]
        assert (
            list(call.prompt_token_ids) == prompt == request.get("token_ids", request.get("prompt"))
        )
        assert list(call.output_token_ids) == choice["token_ids"]
        assert list(call.output_logprobs) == returned_logprobs(choice)
        assert call.finish_reason == choice["finish_reason"]


def returned_logprobs(choice: dict[str, Any]) -> list[float]:
    logprobs = choice["logprobs"]
    if "content" in logprobs:
        return [entry["logprob"] for entry in logprobs["content"]]
    return list(logprobs["token_logprobs"])


def assert_retokenising_would_differ(trajectory: Any, engine: Engine) -> None:
    """The text of the forced turns has another, shorter encoding than what was sampled."""
    tokenizer = ChatTokenizer.from_directory(engine.folder)
    first = trajectory.calls[0]
    text = next(m.content for m in trajectory.messages if m.role == "assistant")
    assert tokenizer.text(first.output_token_ids) == text
    again = tokenizer._encode(text)
    assert again != first.output_token_ids[: len(again)]


async def test_sampled_rollout_scores_an_honest_zero(
    pipeline: Pipeline, recorded_engine: RecordingProxy
) -> None:
    prepared = await pipeline.prepare()
    done = await pipeline.run(prepared)
    scored = await pipeline.score(prepared, done)
    assert scored.reward == 0.0
    assert scored.details["exit_code"] == 1
    assert done.trajectory.stop_reason in {"output_limit", "finished"}
    assert_recorded_as_returned(done.trajectory, recorded_engine)
    (call,) = done.trajectory.calls
    assert call.weight_versions[0].version == "default"
    assert call.sampling.seed is not None
