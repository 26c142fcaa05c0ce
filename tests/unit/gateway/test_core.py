"""Backends, sharing, groups, progress, records, revocation: decisions over plain data."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_api.core.backends import LeastAssigned
from rollout_api.core.groups import GroupTally, GroupVerdicts, is_complete, judge_groups
from rollout_api.core.progress import JobTotals, Tokens, count_progress
from rollout_api.core.records import (
    Ending,
    RolloutIdentity,
    build_record,
    environment_failed,
    gave_up,
)
from rollout_api.core.revocation import revocation_reason
from rollout_api.core.sharing import Candidate, hand_out
from rollout_api.core.units import Unit, UnitState
from rollout_crds.result import Boundary, Failure, Outcome, Stage

FAILURE = Failure(
    stage=Stage.INIT,
    boundary=Boundary.SANDBOX,
    reason="ImageNotFound",
    message="no image",
    attempt=2,
    retryable=False,
)
IDENTITY = RolloutIdentity("default", "j", "u", "g", "t", "r", 0)


@given(
    st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 20), min_size=1), st.integers(0, 60)
)
def test_assignment_levels_backends(assigned: dict[str, int], rollouts: int) -> None:
    heap = LeastAssigned(assigned)
    counts = Counter(assigned)
    for _ in range(rollouts):
        name = heap.assign()
        assert counts[name] == min(counts[n] for n in assigned)
        counts[name] += 1


def test_no_backend_is_false() -> None:
    assert not LeastAssigned({})


JOBS = st.lists(st.tuples(st.integers(-1, 1), st.integers(0, 9)), min_size=1, max_size=6)


@given(JOBS, st.integers(1, 30), st.integers(0, 10))
def test_sharing_gives_all_there_is_and_never_a_lower_priority_first(
    jobs: list[tuple[int, int]], capacity: int, rotation: int
) -> None:
    left = {str(n): queued for n, (_, queued) in enumerate(jobs)}
    priorities = {str(n): priority for n, (priority, _) in enumerate(jobs)}
    order: list[str] = []

    def take(uid: str, count: int) -> int:
        taken = min(count, left[uid])
        left[uid] -= taken
        order.extend([uid] * taken)
        return taken

    hand_out(capacity, [Candidate(uid, priorities[uid]) for uid in left], rotation, take)
    assert len(order) == min(capacity, sum(queued for _, queued in jobs))
    given_priorities = [priorities[uid] for uid in order]
    assert given_priorities == sorted(given_priorities, reverse=True)


def test_equals_share_a_capacity_and_the_first_turn_goes_round() -> None:
    firsts = []
    for rotation in range(3):
        taken: Counter[str] = Counter()

        def take(uid: str, count: int, taken: Counter[str] = taken) -> int:
            taken[uid] += count
            return count

        hand_out(4, [Candidate(uid, 0) for uid in "abc"], rotation, take)
        assert sorted(taken.values()) == [1, 1, 2]
        firsts.append(max(taken, key=lambda uid: taken[uid]))
    assert firsts == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("tally", "verdict"),
    [
        (GroupTally(4, 0, 0), GroupVerdicts(0, 0)),
        (GroupTally(4, 2, 2), GroupVerdicts(1, 0)),
        (GroupTally(4, 2, 0), GroupVerdicts(0, 0)),
        (GroupTally(4, 3, 0), GroupVerdicts(0, 1)),
        (GroupTally(4, 4, 1), GroupVerdicts(0, 1)),
        (GroupTally(1, 0, 0), GroupVerdicts(0, 1)),
    ],
)
def test_a_group_is_judged_as_soon_as_it_is_settled(
    tally: GroupTally, verdict: GroupVerdicts
) -> None:
    assert judge_groups([tally], minimum_usable=2) == verdict


def test_a_job_that_still_loads_is_not_complete() -> None:
    assert not is_complete(loaded=False, rollouts=0, finished=0)
    assert not is_complete(loaded=True, rollouts=2, finished=1)
    assert is_complete(loaded=True, rollouts=2, finished=2)


def test_progress_counts_backoff_as_queued_and_leaves_blocked_out() -> None:
    counts = [
        (Stage.RUN, UnitState.QUEUED, 1),
        (Stage.RUN, UnitState.BACKOFF, 2),
        (Stage.RUN, UnitState.LEASED, 4),
        (Stage.EVAL, UnitState.BLOCKED, 7),
    ]
    found = count_progress(
        JobTotals(1, 7, 1, 2), counts, [(Outcome.SCORED, 1)], [Tokens(3, 4), Tokens(10, 20)]
    )
    assert (found.stages.run.queued, found.stages.run.running) == (3, 4)
    assert found.stages.eval.queued == 0
    assert found.outcomes.scored == 1
    assert (found.prompt_tokens, found.output_tokens) == (13, 24)


@pytest.mark.parametrize(
    "ending",
    [
        gave_up(FAILURE, policy_error=False),
        gave_up(FAILURE, policy_error=True),
        environment_failed(FAILURE),
        Ending(Outcome.CANCELLED),
    ],
)
def test_no_failure_is_ever_a_reward_or_trainable(ending: Ending) -> None:
    record = build_record(IDENTITY, ending, [], [], {})
    assert record.reward is None
    assert record.trainable is False
    assert record.untrainable_reasons == (ending.outcome.value,)


def test_provenance_decides_whether_a_scored_rollout_is_trainable() -> None:
    scored = Ending(Outcome.SCORED, reward=0.0)
    assert build_record(IDENTITY, scored, [], [], {}).trainable
    forced = build_record(IDENTITY, scored, [], ["forced_decoding"], {})
    assert (forced.trainable, forced.untrainable_reasons) == (False, ("forced_decoding",))


def test_a_failed_environment_keeps_its_cause() -> None:
    failure = environment_failed(FAILURE).failure
    assert failure is not None
    assert (failure.reason, failure.boundary) == ("EnvironmentFailed", Boundary.SANDBOX)
    assert failure.message == "ImageNotFound: no image"


def test_only_stages_that_were_started_have_timings() -> None:
    started = Unit("run:r", Stage.RUN, UnitState.DONE, attempt=2, queued_seconds=1.5)
    units = [started, Unit("eval:r", Stage.EVAL, UnitState.CANCELLED)]
    record = build_record(IDENTITY, Ending(Outcome.CANCELLED), units, [], {})
    assert set(record.stages) == {Stage.RUN}
    assert record.stages[Stage.RUN].queued_seconds == 1.5


@pytest.mark.parametrize(
    ("state", "cancelled", "suspended", "reason"),
    [
        (None, False, False, "lost"),
        (UnitState.LEASED, True, False, "cancelled"),
        (UnitState.CANCELLED, False, False, "cancelled"),
        (UnitState.QUEUED, False, True, "suspended"),
        (UnitState.QUEUED, False, False, "lost"),
        (UnitState.DONE, False, True, "lost"),
    ],
)
def test_why_a_lease_is_revoked(
    state: UnitState | None, cancelled: bool, suspended: bool, reason: str
) -> None:
    assert revocation_reason(state, cancelled=cancelled, suspended=suspended) == reason
