"""The worker's loop against a gateway in memory."""

import asyncio
from collections.abc import Callable

import pytest

from rollout_client.errors import Invalid, Unavailable
from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary, Stage
from rollout_crds.task import Task
from rollout_crds.wire import (
    Completion,
    EvalDone,
    HandedBack,
    Heartbeat,
    HeartbeatReply,
    Lease,
    LeaseRequest,
    Revocation,
    StageFailed,
    StageResult,
    WorkerHello,
)
from rollout_stages.errors import StageError
from rollout_stages.persistence import RetryTiming
from rollout_stages.work import Work
from rollout_stages.worker import Timing, Worker, WorkerIdentity
from tests.unit.stages.leases import job_spec, lease

TASK = Task(id="t", instruction="do it")
FAST = Timing(
    poll=1.0,
    idle_heartbeat=0.02,
    retry=RetryTiming(first=0.01, longest=0.02),
    stop_grace=0.5,
    last_words=0.2,
)


def unit(number: int = 0, *, seconds: int = 100) -> Lease:
    return lease(
        Stage.EVAL,
        TASK,
        job_spec(),
        work_id=f"eval:{number}",
        lease_seconds=0.06,
        active_deadline_seconds=seconds,
    )


class MemoryGateway:
    """Gives the leases it was made with; `down` makes every request fail."""

    def __init__(self, *leases: Lease) -> None:
        self.waiting = list(leases)
        self.down = False
        self.lost: set[str] = set()
        self.refuse: Callable[[Completion], bool] = lambda _: False
        self.revoke: list[Revocation] = []
        self.hellos: list[WorkerHello] = []
        self.capacities: list[int] = []
        self.heartbeats: list[Heartbeat] = []
        self.completions: list[Completion] = []
        self.completed = asyncio.Event()

    def _check(self) -> None:
        if self.down:
            raise Unavailable("down", request="test")

    async def hello(self, hello: WorkerHello) -> None:
        self._check()
        self.hellos.append(hello)

    async def lease(self, request: LeaseRequest) -> list[Lease]:
        self._check()
        self.capacities.append(request.capacity)
        given, self.waiting = self.waiting[: request.capacity], self.waiting[request.capacity :]
        if not given:
            await asyncio.sleep(0.02)
        return given

    async def heartbeat(self, heartbeat: Heartbeat) -> HeartbeatReply:
        self._check()
        self.heartbeats.append(heartbeat)
        revoked, self.revoke = tuple(self.revoke), []
        return HeartbeatReply(revoked=revoked)

    async def complete(self, completion: Completion) -> bool:
        self._check()
        if self.refuse(completion):
            raise Invalid("wrong", request="test", status=422)
        self.completions.append(completion)
        self.completed.set()
        return completion.work_id not in self.lost

    def results(self) -> list[StageResult]:
        return [completion.result for completion in self.completions]


class Scripted:
    """A stage that does what it is told, and counts how much it does at once."""

    def __init__(self, do: Callable[[Work], StageResult] | None = None) -> None:
        self.do = do
        self.running = 0
        self.most = 0
        self.go_on = asyncio.Event()

    async def run(self, work: Work) -> StageResult:
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            if self.do is not None:
                return self.do(work)
            await self.go_on.wait()
            return EvalDone(reward=1.0)
        finally:
            self.running -= 1


class Lingering(Scripted):
    """A stage that takes a minute to stop."""

    async def run(self, work: Work) -> StageResult:
        try:
            return await super().run(work)
        finally:
            await asyncio.sleep(60)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


class Running:
    """A worker that runs in the body of `async with`."""

    def __init__(self, gateway: MemoryGateway, stage: Scripted, concurrency: int = 2) -> None:
        identity = WorkerIdentity("w", "i1", Stage.EVAL, concurrency, job_uid="uid")
        self.stop = asyncio.Event()
        self.worker = Worker(gateway, stage, identity, FAST)

    async def __aenter__(self) -> "Running":
        self.task = asyncio.create_task(self.worker.run(self.stop))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.stop.set()
        await asyncio.wait_for(self.task, 5)


async def test_result_is_completed_with_the_attempt_of_its_lease() -> None:
    gateway = MemoryGateway(unit())
    async with Running(gateway, Scripted(lambda _: EvalDone(reward=0.5))):
        await until(lambda: gateway.completions)
    (completion,) = gateway.completions
    assert (completion.work_id, completion.attempt) == ("eval:0", 1)
    assert completion.result == EvalDone(reward=0.5)
    assert gateway.hellos == [WorkerHello(worker="w", incarnation="i1")]


async def test_never_works_on_more_than_its_concurrency() -> None:
    gateway = MemoryGateway(*(unit(n) for n in range(6)))
    stage = Scripted()
    async with Running(gateway, stage, concurrency=2):
        await until(lambda: stage.running == 2)
        await asyncio.sleep(0.05)
        stage.go_on.set()
        await until(lambda: len(gateway.completions) == 6)
    assert stage.most == 2
    assert max(gateway.capacities) == 2


async def test_finished_result_survives_a_gateway_that_is_away() -> None:
    gateway = MemoryGateway(unit())
    stage = Scripted()
    async with Running(gateway, stage):
        await until(lambda: stage.running)
        gateway.down = True
        stage.go_on.set()
        await asyncio.sleep(0.1)
        assert not gateway.completions
        gateway.down = False
        await until(lambda: gateway.completions)
    assert gateway.results() == [EvalDone(reward=1.0)]


async def test_finished_unit_is_renewed_until_its_result_is_taken() -> None:
    gateway = MemoryGateway(unit())
    stage = Scripted()
    async with Running(gateway, stage):
        await until(lambda: stage.running)
        original, gateway.complete = gateway.complete, _unavailable  # type: ignore[method-assign]
        stage.go_on.set()
        await until(lambda: not stage.running)
        beats = len(gateway.heartbeats)
        await until(lambda: len(gateway.heartbeats) > beats + 2)
        assert gateway.heartbeats[-1].leases[0].work_id == "eval:0"
        gateway.complete = original  # type: ignore[method-assign]
        await until(lambda: gateway.completions)


async def _unavailable(_: Completion) -> bool:
    raise Unavailable("away", request="test")


@pytest.mark.parametrize("reason", ["cancelled", "suspended"])
async def test_revoked_work_is_stopped_and_handed_back(reason: str) -> None:
    gateway = MemoryGateway(unit())
    stage = Scripted()
    async with Running(gateway, stage):
        await until(lambda: stage.running)
        gateway.revoke = [Revocation(work_id="eval:0", attempt=1, reason=reason)]  # type: ignore[arg-type]
        await until(lambda: gateway.completions)
    assert gateway.results() == [HandedBack(reason=reason)]
    assert stage.running == 0


async def test_lost_lease_is_dropped_without_a_completion() -> None:
    gateway = MemoryGateway(unit(0), unit(1))
    stage = Scripted()
    async with Running(gateway, stage, concurrency=1):
        await until(lambda: stage.running)
        gateway.revoke = [Revocation(work_id="eval:0", attempt=1, reason="lost")]
        await until(lambda: not gateway.waiting)
        stage.go_on.set()
        await until(lambda: gateway.completions)
    assert [c.work_id for c in gateway.completions] == ["eval:1"]


async def test_revocation_of_another_attempt_changes_nothing() -> None:
    gateway = MemoryGateway(unit())
    stage = Scripted()
    async with Running(gateway, stage):
        await until(lambda: stage.running)
        gateway.revoke = [Revocation(work_id="eval:0", attempt=2, reason="lost")]
        await until(lambda: not gateway.revoke)
        stage.go_on.set()
        await until(lambda: gateway.completions)
    assert gateway.results() == [EvalDone(reward=1.0)]


async def test_stopping_hands_back_what_runs() -> None:
    gateway = MemoryGateway(unit())
    stage = Scripted()
    async with Running(gateway, stage):
        await until(lambda: stage.running)
    assert gateway.results() == [HandedBack(reason="the worker stops")]


async def test_stopping_does_not_wait_for_a_gateway_that_is_away() -> None:
    gateway = MemoryGateway(unit())
    stage = Scripted()
    async with Running(gateway, stage):
        await until(lambda: stage.running)
        gateway.down = True
    assert not gateway.completions


async def test_stopping_does_not_wait_for_work_that_does_not_end_either() -> None:
    gateway = MemoryGateway(unit())
    stage = Lingering()
    async with Running(gateway, stage):
        await until(lambda: stage.running)
        gateway.down = True
    assert not gateway.completions


async def test_work_that_does_not_end_is_handed_back_all_the_same() -> None:
    gateway = MemoryGateway(unit())
    stage = Lingering()
    async with Running(gateway, stage):
        await until(lambda: stage.running)
    assert gateway.results() == [HandedBack(reason="the worker stops")]


async def test_classified_failure_is_reported_as_it_is() -> None:
    def fail(_: Work) -> StageResult:
        raise StageError(Boundary.SANDBOX, FailureReason.SANDBOX_DIED, "it died", retryable=True)

    gateway = MemoryGateway(unit())
    async with Running(gateway, Scripted(fail)):
        await until(lambda: gateway.completions)
    (result,) = gateway.results()
    assert isinstance(result, StageFailed)
    assert result.failure.model_dump() == {
        "stage": Stage.EVAL,
        "boundary": Boundary.SANDBOX,
        "reason": "SandboxDied",
        "message": "it died",
        "attempt": 1,
        "retryable": True,
    }


async def test_defect_is_logged_with_its_traceback_and_reported_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(_: Work) -> StageResult:
        raise KeyError("secret detail")

    gateway = MemoryGateway(unit())
    async with Running(gateway, Scripted(fail)):
        await until(lambda: gateway.completions)
    (result,) = gateway.results()
    assert isinstance(result, StageFailed)
    assert result.failure.reason == "InternalError"
    assert result.failure.retryable
    assert "secret detail" not in result.failure.message
    assert "secret detail" in caplog.text


async def test_active_deadline_ends_the_stage() -> None:
    gateway = MemoryGateway(unit(seconds=0))
    async with Running(gateway, Scripted()):
        await until(lambda: gateway.completions)
    (result,) = gateway.results()
    assert isinstance(result, StageFailed)
    assert result.failure.reason == "StageDeadlineExceeded"
    assert result.failure.boundary is Boundary.DEADLINE
    assert not result.failure.retryable


async def test_result_that_the_gateway_refuses_becomes_a_failure() -> None:
    gateway = MemoryGateway(unit())
    gateway.refuse = lambda completion: isinstance(completion.result, EvalDone)
    async with Running(gateway, Scripted(lambda _: EvalDone(reward=1.0))):
        await until(lambda: gateway.completions)
    (result,) = gateway.results()
    assert isinstance(result, StageFailed)
    assert result.failure.reason == "InternalError"
    assert not result.failure.retryable


async def test_heartbeat_carries_the_progress() -> None:
    gateway = MemoryGateway(unit())
    stage = Scripted()

    async def run(work: Work) -> StageResult:
        work.progress.turns, work.progress.output_tokens = 3, 40
        await stage.go_on.wait()
        return EvalDone(reward=1.0)

    stage.run = run  # type: ignore[method-assign]
    async with Running(gateway, stage):
        await until(lambda: any(b.leases and b.leases[0].turns for b in gateway.heartbeats))
        stage.go_on.set()
    beat = next(b for b in gateway.heartbeats if b.leases and b.leases[0].turns)
    assert (beat.leases[0].turns, beat.leases[0].output_tokens) == (3, 40)
