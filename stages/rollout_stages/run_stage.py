"""RUN: fork the prepared environment, let the agent work in it, keep what it said and made."""

from pathlib import Path

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.trajectory import Message, StopReason
from rollout_crds.wire import LLMBackend, PreparedEnvironment, RunArtifact, RunDone
from rollout_stages.agent import Agent, Script
from rollout_stages.errors import Verdict, Verdicts, boundary
from rollout_stages.handlers.protocol import TaskHandler
from rollout_stages.handlers.registry import Handlers
from rollout_stages.model import ModelSettings, RecordedModel
from rollout_stages.names import model_directory
from rollout_stages.ports import BlobStore, Engines, Sandbox, Sandboxes
from rollout_stages.tokens.conversation import ChatTokenizer, TokenizerUnusable
from rollout_stages.tools import ToolBox, schemas
from rollout_stages.work import Work

_TOKENIZER: Verdicts = {
    TokenizerUnusable: Verdict(FailureReason.TOKENIZER_UNUSABLE, retryable=False)
}


class RunStage:
    """Runs agents.

    Args:
        sandboxes: Where they work.
        engines: Where their tokens come from.
        blobs: Where what they made goes to.
        models: Directory of models that manifests call by plain names.
    """

    def __init__(
        self, sandboxes: Sandboxes, engines: Engines, blobs: BlobStore, models: Path
    ) -> None:
        self._sandboxes = sandboxes
        self._engines = engines
        self._blobs = blobs
        self._models = models
        self._handlers = Handlers()
        self._tokenizers: dict[Path, ChatTokenizer] = {}

    async def run(self, work: Work) -> RunDone:
        """One rollout of the agent."""
        lease = work.lease
        environment, backend = _given(work)
        handler = self._handlers.find(lease.spec.handler)
        async with self._sandboxes.fork(environment, lease.spec.sandbox) as sandbox:
            agent, stop_reason = await self._drive(work, handler, backend, sandbox)
            artifact = await self._artifact(work, handler, agent, sandbox)
        return RunDone(trajectory=agent.trajectory(stop_reason), artifact=artifact)

    async def _drive(
        self, work: Work, handler: TaskHandler, backend: LLMBackend, sandbox: Sandbox
    ) -> tuple[Agent, StopReason]:
        spec = work.lease.spec
        async with boundary(Boundary.MODEL, _TOKENIZER, "make prompts in tokens"):
            tokenizer = self._tokenizer(backend)
            agent = self._agent(work, backend, tokenizer, sandbox)
            work.so_far = agent.trajectory
            opening = _opening(work, handler)
            prompt = tokenizer.first_prompt(
                [{"role": message.role, "content": message.content} for message in opening],
                schemas(spec.agent.tools),
            )
            return agent, await agent.run(opening, prompt)

    def _agent(
        self, work: Work, backend: LLMBackend, tokenizer: ChatTokenizer, sandbox: Sandbox
    ) -> Agent:
        spec, task = work.lease.spec, work.lease.task
        model = RecordedModel(
            self._engines.at(backend.url, backend.pool),
            _model_settings(work, backend, tokenizer),
            work.progress,
            tokenizer.text,
        )
        forced = spec.agent.decoding == "demonstration"
        return Agent(
            backend.pool.model,
            model,
            tokenizer,
            ToolBox(spec.agent.tools, sandbox, spec.sandbox.resources.action_timeout_seconds),
            Script(spec.llm.max_turns, tuple(task.demonstration) if forced else None),
            work.progress,
        )

    async def _artifact(
        self, work: Work, handler: TaskHandler, agent: Agent, sandbox: Sandbox
    ) -> RunArtifact:
        files = None
        if paths := work.lease.task.grading.artifacts or handler.artifacts:
            files = await self._blobs.put(await sandbox.export(paths))
        return RunArtifact(answer=agent.last_answer, files=files)

    def _tokenizer(self, backend: LLMBackend) -> ChatTokenizer:
        directory = model_directory(backend.pool.tokenizer_path, self._models)
        if directory not in self._tokenizers:
            self._tokenizers[directory] = ChatTokenizer.from_directory(directory)
        return self._tokenizers[directory]


def _given(work: Work) -> tuple[PreparedEnvironment, LLMBackend]:
    lease = work.lease
    if lease.environment is None or lease.backend is None:
        msg = f"the lease of {lease.work_id} lacks environment or backend"
        raise ValueError(msg)
    return lease.environment, lease.backend


def _model_settings(work: Work, backend: LLMBackend, tokenizer: ChatTokenizer) -> ModelSettings:
    llm = work.lease.spec.llm
    return ModelSettings(
        sampling=llm.sampling,
        context_tokens=min(llm.max_context_tokens, backend.max_model_len or llm.max_context_tokens),
        sample_index=work.lease.sample_index or 0,
        backend=backend.name,
        logprobs_mode=backend.pool.logprobs_mode,
        turn_end_id=tokenizer.turn_end_id,
        vocabulary_size=tokenizer.vocabulary_size,
        deadline=work.deadline,
    )


def _opening(work: Work, handler: TaskHandler) -> list[Message]:
    system = work.lease.spec.agent.system_prompt
    if system is None:
        system = handler.system_prompt
    user = Message(role="user", content=work.lease.task.instruction)
    return [Message(role="system", content=system), user] if system else [user]
