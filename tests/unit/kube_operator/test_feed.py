"""The feed keeps the newest version of each object, whoever brings it and in whatever order."""

import pytest

from rollout_crds.pod import Pod
from rollout_operator.kubernetes.feed import Feed

KEY = ("Pod", "default", "p")


def pod(version: int, name: str = "p", uid: str = "u") -> Pod:
    meta = {"name": name, "uid": uid, "resource_version": str(version)}
    return Pod.model_validate({"metadata": meta, "spec": {"containers": []}})


def versions(batch):
    return {
        change.name: change.object and change.object.metadata.resource_version
        for change in batch.changed
    }


async def test_a_late_event_does_not_undo_our_own_write():
    feed = Feed()
    feed.put(pod(7))
    feed.put(pod(5))
    assert versions(await feed.changes(1)) == {"p": "7"}


async def test_changes_of_one_object_come_once_and_are_told_once():
    feed = Feed()
    feed.put(pod(1))
    feed.put(pod(2))
    assert versions(await feed.changes(1)) == {"p": "2"}
    assert await feed.changes(0.01) is None


async def test_an_object_that_is_gone_is_told_as_gone():
    feed = Feed()
    feed.put(pod(1))
    feed.drop(KEY, "u")
    assert versions(await feed.changes(1)) == {"p": None}


async def test_the_end_of_an_earlier_object_does_not_remove_its_successor():
    feed = Feed()
    feed.put(pod(3, uid="second"))
    feed.drop(KEY, "first")
    assert feed.get(KEY) == pod(3, uid="second")


async def test_an_answer_that_comes_after_the_end_does_not_revive_an_object():
    feed = Feed()
    feed.put(pod(1))
    feed.drop(KEY, "u")
    feed.put(pod(2))
    assert feed.get(KEY) is None


async def test_a_listing_ends_what_it_lacks_but_not_what_is_newer():
    feed = Feed()
    feed.put(pod(1, "missed", "a"))
    feed.put(pod(9, "newer", "b"))
    batch = feed.take_listing([pod(4, "listed", "c")], 5)
    assert batch.complete
    assert versions(batch) == {"listed": "4", "newer": "9"}


async def test_a_listing_does_not_revive_what_ended_while_it_was_made():
    feed = Feed()
    feed.put(pod(1))
    feed.drop(KEY, "u")
    assert versions(feed.take_listing([pod(1)], 5)) == {}


async def test_a_listing_that_is_asked_for_waits_for_its_turn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("rollout_operator.kubernetes.feed._LISTING_PAUSE_SECONDS", 0.05)
    feed = Feed()
    feed.ask_for_listing()
    assert await feed.changes(60) is None
