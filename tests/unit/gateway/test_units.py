"""The rules of a unit, alone and under every order of events."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollout_api.core.units import (
    FINAL_STATES,
    Done,
    GaveUp,
    Holder,
    Refused,
    Repeated,
    Requeued,
    RetryPolicy,
    Unit,
    UnitState,
    cancel,
    complete,
    enqueue,
    expire,
    hand_back,
    lease,
    reclaim,
)
from rollout_crds.result import Boundary, Failure, Stage
from rollout_crds.wire import EvalDone, HandedBack, StageFailed, StageResult

HOLDER = Holder("w", "1")
POLICY = RetryPolicy(max_attempts=3, backoff_seconds=2.0)
QUEUED = Unit("eval:r", Stage.EVAL, UnitState.QUEUED, queued_at=0.0)


def failure(*, retryable: bool = True, policy_error: bool = False) -> StageFailed:
    cause = Failure(
        stage=Stage.EVAL, boundary=Boundary.TASK, reason="X", attempt=1, retryable=retryable
    )
    return StageFailed(failure=cause, policy_error=policy_error)


DONE = EvalDone(reward=0.0)


def test_a_lease_counts_attempts_and_queueing() -> None:
    leased = lease(QUEUED, HOLDER, "b", now=5.0, until=20.0)
    assert (leased.attempt, leased.queued_seconds, leased.due_at) == (1, 5.0, 20.0)
    again = lease(hand_back(leased, 8.0), HOLDER, "b", now=9.0, until=24.0)
    assert (again.attempt, again.queued_seconds, again.active_seconds) == (2, 6.0, 3.0)


@pytest.mark.parametrize(
    ("charged", "seconds"), [(1, 2.0), (2, 4.0), (3, 8.0), (6, 60.0), (100, 60.0)]
)
def test_backoff_doubles_up_to_a_minute(charged: int, seconds: float) -> None:
    assert POLICY.backoff(charged) == seconds


def test_expiry_backs_off_and_the_last_one_gives_up() -> None:
    leased = lease(QUEUED, HOLDER, None, 0.0, 15.0)
    first = expire(leased, POLICY, 15.0)
    assert isinstance(first, Requeued)
    assert (first.unit.state, first.unit.due_at) == (UnitState.BACKOFF, 17.0)
    last = expire(replace(leased, charged=2), POLICY, 15.0)
    assert isinstance(last, GaveUp)
    assert last.failure.reason == "LeaseExpired"


def test_a_restarted_worker_causes_no_backoff_but_is_charged() -> None:
    decision = reclaim(lease(QUEUED, HOLDER, None, 0.0, 15.0), POLICY, 1.0)
    assert (decision.unit.state, decision.unit.charged) == (UnitState.QUEUED, 1)


@pytest.mark.parametrize(
    ("result", "kind", "charged"),
    [
        (DONE, Done, 0),
        (failure(), Requeued, 1),
        (failure(retryable=False), GaveUp, 1),
        (failure(policy_error=True), GaveUp, 0),
        (HandedBack(reason="stop"), Requeued, 0),
    ],
)
def test_what_a_completion_does(result: StageResult, kind: type, charged: int) -> None:
    leased = lease(QUEUED, HOLDER, None, 0.0, 15.0)
    decision = complete(leased, HOLDER, 1, result, "d", POLICY, 4.0)
    assert isinstance(decision, kind)
    assert isinstance(decision, Done | Requeued | GaveUp)
    assert decision.unit.charged == charged
    assert decision.unit.active_seconds == 4.0
    repeated = complete(decision.unit, HOLDER, 1, result, "d", POLICY, 5.0)
    assert isinstance(repeated, Repeated)
    assert isinstance(complete(decision.unit, HOLDER, 1, DONE, "e", POLICY, 5.0), Refused)


@pytest.mark.parametrize("holder", [Holder("w", "2"), Holder("other", "1")])
def test_only_the_holder_may_complete(holder: Holder) -> None:
    leased = lease(QUEUED, HOLDER, None, 0.0, 15.0)
    assert isinstance(complete(leased, holder, 1, DONE, "d", POLICY, 1.0), Refused)


EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("lease"), st.sampled_from("abc")),
        st.tuples(st.just("complete"), st.integers(0, 8)),
        st.tuples(st.just("fail"), st.integers(0, 8)),
        st.tuples(st.just("hand_back"), st.integers(0, 8)),
        st.tuples(st.just("restart"), st.sampled_from("abc")),
        st.tuples(st.just("time"), st.floats(0.1, 30)),
        st.tuples(st.just("cancel"), st.just(0)),
    ),
    max_size=40,
)


class Model:
    """One unit, the workers' memory of their leases, and all that happened."""

    def __init__(self) -> None:
        self.unit = QUEUED
        self.now = 0.0
        self.leases: list[tuple[Holder, int]] = []
        self.incarnations = {"a": 1, "b": 1, "c": 1}
        self.endings: list[str] = []

    def step(self, event: str, argument: str | int | float) -> None:
        before = self.unit
        getattr(self, event)(argument)
        assert self.unit.attempt >= before.attempt
        assert self.unit.charged <= POLICY.max_attempts
        if before.state in FINAL_STATES:
            assert self.unit == before

    def lease(self, worker: str) -> None:
        if self.unit.state is UnitState.QUEUED:
            holder = Holder(worker, str(self.incarnations[worker]))
            self.unit = lease(self.unit, holder, None, self.now, self.now + 15)
            self.leases.append((holder, self.unit.attempt))

    def complete(self, index: int) -> None:
        self._send(index, DONE)

    def fail(self, index: int) -> None:
        self._send(index, failure())

    def hand_back(self, index: int) -> None:
        self._send(index, HandedBack(reason="stop"))

    def restart(self, worker: str) -> None:
        self.incarnations[worker] += 1
        if self.unit.state is UnitState.LEASED and self.unit.worker == worker:
            self._settle(reclaim(self.unit, POLICY, self.now))

    def time(self, seconds: float) -> None:
        self.now += seconds
        if self.unit.due_at is None or self.unit.due_at > self.now:
            return
        if self.unit.state is UnitState.LEASED:
            self._settle(expire(self.unit, POLICY, self.now))
        else:
            self.unit = enqueue(self.unit, self.now)

    def cancel(self, _: int) -> None:
        if self.unit.state not in FINAL_STATES:
            self.endings.append("cancelled")
        self.unit = cancel(self.unit, self.now)

    def _send(self, index: int, result: StageResult) -> None:
        """Any worker may send any result for any lease it ever had, as often as it likes."""
        if not self.leases:
            return
        holder, attempt = self.leases[index % len(self.leases)]
        current = self.unit.state is UnitState.LEASED and self.unit.attempt == attempt
        decision = complete(self.unit, holder, attempt, result, result.kind, POLICY, self.now)
        if isinstance(decision, Repeated | Refused):
            assert not current
            return
        assert current
        self._settle(decision)

    def _settle(self, decision: Done | Requeued | GaveUp) -> None:
        self.unit = decision.unit
        if not isinstance(decision, Requeued):
            self.endings.append(type(decision).__name__)


@given(EVENTS)
@settings(max_examples=300, deadline=None)
def test_every_order_of_events_ends_a_unit_at_most_once(
    events: list[tuple[str, str | int | float]],
) -> None:
    model = Model()
    for event, argument in events:
        model.step(event, argument)
    assert len(model.endings) == (model.unit.state in FINAL_STATES)
    # Whatever happened, time and a diligent worker end it.
    for _ in range(20):
        model.step("time", 60.0)
        model.step("lease", "a")
        model.step("complete", len(model.leases) - 1)
    assert len(model.endings) == 1
    attempts = [attempt for _, attempt in model.leases]
    assert attempts == sorted(set(attempts))
