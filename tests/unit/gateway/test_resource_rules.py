"""What may be done to a resource, under every order of changes."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollout_api.core.resources import (
    BeingDeletedError,
    ImmutableFieldsError,
    Kept,
    Removed,
    StaleVersionError,
    create,
    delete,
    require_version,
    set_finalizers,
    set_status,
    update,
)
from rollout_crds.resources import BY_KIND
from rollout_crds.rolloutjob import RolloutJob, RolloutJobStatus
from tests.contract.gateway.samples import spec

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KIND = BY_KIND["RolloutJob"]


def job(**changes: object) -> RolloutJob:
    return RolloutJob.model_validate({"metadata": {"name": "j"}, "spec": spec(**changes)})


def created() -> RolloutJob:
    resource = create(job(), "uid", NOW).resource
    assert isinstance(resource, RolloutJob)
    return resource


def test_users_can_not_set_what_the_store_sets() -> None:
    forged = job()
    forged.metadata.uid = "forged"
    forged.metadata.generation = 7
    forged.metadata.deletion_timestamp = NOW
    metadata = create(forged, "uid", NOW).resource.metadata
    assert (metadata.uid, metadata.generation, metadata.deletion_timestamp) == ("uid", 1, None)


def test_all_fixed_fields_are_named_at_once() -> None:
    with pytest.raises(ImmutableFieldsError) as error:
        update(KIND, created(), job(samplesPerTask=2, handler="code", priority=1))
    assert error.value.fields == ["handler", "samplesPerTask"]


def test_a_version_is_only_checked_when_it_is_given() -> None:
    stored = created()
    stored.metadata.resource_version = "5"
    require_version(stored, None)
    require_version(stored, "5")
    with pytest.raises(StaleVersionError):
        require_version(stored, "4")
    with pytest.raises(StaleVersionError):
        require_version(None, "4")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("priority"), st.integers(0, 3)),
        st.tuples(st.just("status"), st.integers(0, 3)),
        st.tuples(st.just("finalizers"), st.lists(st.sampled_from("ab"), max_size=2)),
        st.tuples(st.just("delete"), st.just(0)),
    ),
    max_size=12,
)


@given(STEPS)
def test_generations_count_spec_changes_and_finalizers_decide_removal(
    steps: list[tuple[str, object]],
) -> None:
    stored, generation = created(), 1
    for step, argument in steps:
        before = stored
        deleting = before.metadata.deletion_timestamp is not None
        outcome: Kept | Removed
        if step == "priority":
            if deleting:
                with pytest.raises(BeingDeletedError):
                    update(KIND, before, job(priority=argument))
                continue
            generation += before.spec.priority != argument
            outcome = update(KIND, before, job(priority=argument))
        elif step == "status":
            outcome = set_status(before, RolloutJobStatus(observed_generation=argument))  # type: ignore[arg-type]
        elif step == "finalizers":
            outcome = set_finalizers(before, argument)  # type: ignore[arg-type]
            assert isinstance(outcome, Removed) == (deleting and not argument)
        else:
            outcome = delete(before, NOW)
            assert isinstance(outcome, Removed) == (not before.metadata.finalizers)
        if isinstance(outcome, Removed):
            return
        assert outcome.changed == (outcome.resource != before)
        assert isinstance(outcome.resource, RolloutJob)
        stored = outcome.resource
        assert stored.metadata.generation == generation
        assert stored.metadata.uid == "uid"
