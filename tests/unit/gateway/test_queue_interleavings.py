"""A whole job on a real database: every order of events ends each rollout exactly once."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from sqlalchemy import Connection, select

from rollout_api.core.completions import prepare
from rollout_api.core.errors import LeaseLostError
from rollout_api.core.task_lines import NumberedTask
from rollout_api.store import job_rows, job_views, loading, queue
from rollout_api.store.database import Database
from rollout_api.store.llm_pools import register_llm_pool
from rollout_api.store.queue import Claim
from rollout_api.store.schema import records, units
from rollout_api.store.writer import Transaction
from rollout_crds.control import JobState, JobSubmission, LLMPoolRegistration
from rollout_crds.result import Stage
from rollout_crds.task import Task
from rollout_crds.wire import LeaseRequest, WorkerHello
from tests.contract.gateway.samples import SUCCESS, failed, spec

SAMPLES, GROUPS = 2, 2
LEASE_SECONDS = 15.0
STAGES = st.sampled_from(list(Stage))
WORKERS = st.sampled_from(["a", "b"])
INDEX = st.integers(0, 50)


class JobMachine(RuleBasedStateMachine):
    """Workers that lease, fail, restart, repeat themselves and come late; a job that is steered."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.now = 1000.0
        self.incarnations = {"a": 1, "b": 1}
        self.claims: list[tuple[str, str, Claim]] = []
        self.suspended = False
        self.cancelled = False
        self.seen: list[str] = []
        self.attempts: dict[str, int] = {}
        self._open()
        self._load()

    def _open(self) -> None:
        self.database = Database(Path(self.folder.name) / "gateway.db", durable=False)
        self.connection = self.database._engine.connect().execution_options(writer=True)

    def write(self, function: Any) -> Any:
        with self.connection.begin():
            return function(Transaction(self.connection))

    def _load(self) -> None:
        changes = {"samplesPerTask": SAMPLES, "retry": {"maxAttempts": 2, "backoffSeconds": 5}}
        submission = JobSubmission(uid="u", name="j", namespace="default", spec=spec(**changes))
        pool = {
            "namespace": "default",
            "name": "llm",
            "spec": {"model": "m", "tokenizer": "/t", "endpoints": [{"url": "http://x"}]},
            "backends": [{"name": n, "url": "http://x", "healthy": True} for n in ("x", "y")],
        }
        tasks = [NumberedTask(n, Task(id=f"t{n}", instruction="i")) for n in range(1, GROUPS + 1)]
        self.write(lambda tx: register_llm_pool(tx, LLMPoolRegistration.model_validate(pool)))
        self.write(lambda tx: loading.begin_job(tx, submission, self.now))
        self.write(lambda tx: loading.load_chunk(tx, "u", tasks, self.now))
        self.write(lambda tx: loading.finish_loading(tx, "u"))

    @rule(stage=STAGES, worker=WORKERS, capacity=st.integers(1, 3))
    def lease(self, stage: Stage, worker: str, capacity: int) -> None:
        incarnation = str(self.incarnations[worker])
        request = LeaseRequest(
            worker=worker, incarnation=incarnation, stage=stage, job_uid="u", capacity=capacity
        )
        claims = self.write(lambda tx: queue.claim(tx, request, 0, self.now, LEASE_SECONDS))
        assert len(claims) <= capacity
        assert not (claims and (self.suspended or self.cancelled))
        for claim in claims:
            assert claim.unit.attempt > self.attempts.get(claim.unit.work_id, 0)
            self.attempts[claim.unit.work_id] = claim.unit.attempt
            self.claims.append((worker, incarnation, claim))

    @precondition(lambda self: self.claims)
    @rule(index=INDEX, how=st.sampled_from(["done", "done", "retry", "final", "policy", "back"]))
    def complete(self, index: int, how: str) -> None:
        worker, incarnation, claim = self.claims[index % len(self.claims)]
        self._send(worker, incarnation, claim, self._result(claim.unit.stage.value, how))

    def _result(self, stage: str, how: str) -> dict[str, Any]:
        return {
            "done": SUCCESS[stage],
            "retry": failed(stage),
            "final": failed(stage, retryable=False),
            "policy": failed(stage, policy_error=True),
            "back": {"kind": "handed_back", "reason": "stop"},
        }[how]

    def _send(self, worker: str, incarnation: str, claim: Claim, result: dict[str, Any]) -> None:
        body = {
            "worker": worker,
            "incarnation": incarnation,
            "work_id": claim.unit.work_id,
            "attempt": claim.unit.attempt,
            "result": result,
        }
        prepared = prepare(json.dumps(body).encode())
        before = self._records()
        try:
            self.write(lambda tx: queue.complete_unit(tx, prepared, self.now))
        except LeaseLostError:
            assert self._records() == before

    @rule(worker=WORKERS)
    def restart_worker(self, worker: str) -> None:
        self.incarnations[worker] += 1
        hello = WorkerHello(worker=worker, incarnation=str(self.incarnations[worker]))
        self.write(lambda tx: queue.reclaim_from_earlier(tx, hello, self.now))

    @rule(seconds=st.sampled_from([1.0, 6.0, 20.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.write(lambda tx: queue.advance(tx, self.now))

    @rule(suspended=st.booleans())
    def steer(self, suspended: bool) -> None:
        self.suspended = suspended
        state = JobState(suspended=suspended)
        self.write(lambda tx: job_rows.set_job_state(tx, "u", state, self.now))

    @precondition(lambda self: len(self.claims) > 5)
    @rule()
    def cancel(self) -> None:
        self.cancelled = True
        state = JobState(suspended=self.suspended, cancelled="enough")
        self.write(lambda tx: job_rows.set_job_state(tx, "u", state, self.now))
        self._sweep()

    @rule()
    def restart_gateway(self) -> None:
        self.connection.close()
        self.database.close()
        self._open()
        self.write(lambda tx: queue.renew_all(tx, self.now, LEASE_SECONDS))

    @invariant()
    def records_are_only_added_and_never_doubled(self) -> None:
        found = self._records()
        assert found[: len(self.seen)] == self.seen
        assert len(found) == len(set(found))
        self.seen = found

    @invariant()
    def backends_carry_level_loads(self) -> None:
        with self.connection.begin():
            assigned = queue._assigned(self.connection, "default/llm")
        leased = [c for c in self.claims if c[2].unit.stage is Stage.RUN]
        assert sum(assigned.values()) <= len(leased)

    def teardown(self) -> None:
        try:
            self._finish()
        finally:
            self.connection.close()
            self.database.close()
            self.folder.cleanup()

    def _finish(self) -> None:
        """Whatever happened, diligent workers end the job with one record per rollout."""
        self.steer(suspended=False)
        for _ in range(4):
            self.time_passes(70.0)
            for stage in Stage:
                start = len(self.claims)
                self.lease(stage, "a", 100)
                for worker, incarnation, claim in self.claims[start:]:
                    self._send(worker, incarnation, claim, SUCCESS[stage.value])
        with self.connection.begin():
            job = job_rows.find_job(self.connection, "u")
            left = self.connection.execute(
                select(units.c.work_id).where(units.c.due_at.is_not(None))
            ).all()
            lines = job_views.read_records(self.connection, "u", 0, 100).lines
        assert job is not None
        assert job.complete
        assert left == []
        found = [json.loads(line) for line in lines]
        assert len({record["rollout_id"] for record in found}) == len(found) == SAMPLES * GROUPS
        for record in found:
            assert (record["reward"] is not None) == (record["outcome"] == "scored")

    def _sweep(self) -> None:
        while self.write(lambda tx: job_rows.cancel_some(tx, "u", self.now)):
            pass

    def _records(self) -> list[str]:
        with self.connection.begin():
            return _record_ids(self.connection)


def _record_ids(connection: Connection) -> list[str]:
    rows = connection.execute(
        select(records.c.sequence, records.c.rollout_id).order_by(records.c.sequence)
    ).all()
    assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
    return [row.rollout_id for row in rows]


TestJob = JobMachine.TestCase
TestJob.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
