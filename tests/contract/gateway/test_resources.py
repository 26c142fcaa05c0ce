"""The embedded store of resources, as users and the operator meet it."""

import asyncio
from typing import Any

import httpx2
import pytest

from tests.contract.gateway.samples import Json, spec


def job(name: str = "j", **changes: Any) -> Json:
    return {
        "apiVersion": "rollout-operator.dev/v1alpha1",
        "kind": "RolloutJob",
        "metadata": {"name": name},
        "spec": spec(**changes),
    }


def pod(name: str, owner_uid: str) -> Json:
    owner = {
        "apiVersion": "rollout-operator.dev/v1alpha1",
        "kind": "RolloutJob",
        "name": "j",
        "uid": owner_uid,
    }
    return {
        "kind": "Pod",
        "metadata": {"name": name, "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "securityContext": {"runAsNonRoot": True}}]},
    }


async def put(http: httpx2.AsyncClient, plural: str, body: Json, **headers: str) -> httpx2.Response:
    name = body["metadata"]["name"]
    return await http.put(f"/v1/{plural}/{name}", json=body, headers=headers)


async def changes(http: httpx2.AsyncClient, since: str, wait: float = 0, **query: Any) -> Json:
    query = {"since": since, "timeoutSeconds": wait, **query}
    found: Json = (await http.get("/v1/changes", params=query, timeout=60)).json()
    return found


async def test_create_read_list(http: httpx2.AsyncClient) -> None:
    created = await put(http, "rolloutjobs", {**job(), "status": {"observedGeneration": 9}})
    assert created.status_code == 201
    body = created.json()
    assert body["metadata"]["uid"]
    assert body["metadata"]["generation"] == 1
    assert body["metadata"]["creationTimestamp"]
    assert body["status"]["observedGeneration"] == 0
    assert (await http.get("/v1/rolloutjobs/j")).json() == body
    assert (await http.get("/v1/rolloutjobs")).json()["items"] == [body]
    other = await http.get("/v1/rolloutjobs", params={"namespace": "other"})
    assert other.json()["items"] == []
    missing = await http.get("/v1/rolloutjobs/j", params={"namespace": "other"})
    assert missing.status_code == 404
    assert "'j'" in missing.json()["detail"]


async def test_the_same_again_changes_nothing_and_a_new_spec_counts_generations(
    http: httpx2.AsyncClient,
) -> None:
    first = (await put(http, "rolloutjobs", job())).json()
    same = await put(http, "rolloutjobs", job())
    assert same.status_code == 200
    assert same.json() == first
    labelled = job()
    labelled["metadata"]["labels"] = {"a": "b"}
    second = (await put(http, "rolloutjobs", labelled)).json()["metadata"]
    assert second["generation"] == 1
    assert int(second["resourceVersion"]) > int(first["metadata"]["resourceVersion"])
    third = (await put(http, "rolloutjobs", job(suspended=True))).json()["metadata"]
    assert third["generation"] == 2
    assert third["uid"] == first["metadata"]["uid"]


async def test_fixed_fields_are_named_with_the_remedy(http: httpx2.AsyncClient) -> None:
    await put(http, "rolloutjobs", job())
    refused = await put(http, "rolloutjobs", job(samplesPerTask=9, priority=1))
    assert refused.status_code == 422
    assert refused.json()["reason"] == "InvalidSpec"
    (error,) = refused.json()["errors"]
    assert error["field"] == "spec.samplesPerTask"
    assert "delete the object first" in error["message"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"samplesPerTask": 0}, "spec.samplesPerTask"),
        ({"sampelsPerTask": 1}, "spec.sampelsPerTask"),
        ({"tasks": {}}, "spec.tasks"),
    ],
)
async def test_invalid_objects_name_the_field(
    http: httpx2.AsyncClient, change: Json, field: str
) -> None:
    refused = await put(http, "rolloutjobs", job(**change))
    assert refused.status_code == 422
    assert refused.json()["reason"] == "InvalidSpec"
    assert refused.json()["errors"][0]["field"] == field
    assert (await http.get("/v1/rolloutjobs")).json()["items"] == []


async def test_name_and_namespace_must_match_the_url(http: httpx2.AsyncClient) -> None:
    refused = await http.put("/v1/rolloutjobs/other", json=job())
    assert refused.json()["errors"][0]["field"] == "metadata.name"
    refused = await http.put("/v1/rolloutjobs/j?namespace=other", json=job())
    assert refused.json()["errors"][0]["field"] == "metadata.namespace"


async def test_if_match_refuses_a_change_of_a_newer_object(http: httpx2.AsyncClient) -> None:
    version = (await put(http, "rolloutjobs", job())).json()["metadata"]["resourceVersion"]
    changed = await put(http, "rolloutjobs", job(priority=1), **{"If-Match": version})
    assert changed.status_code == 200
    stale = await put(http, "rolloutjobs", job(priority=2), **{"If-Match": version})
    assert stale.status_code == 409
    assert (await http.get("/v1/rolloutjobs/j")).json()["spec"]["priority"] == 1


async def test_status_is_kept_apart_from_the_spec(http: httpx2.AsyncClient) -> None:
    await put(http, "rolloutjobs", job())
    status = {"status": {"observedGeneration": 1, "progress": {"groups": 3}}}
    answer = await http.put("/v1/rolloutjobs/j/status", json=status)
    assert answer.json()["status"]["progress"]["groups"] == 3
    version = answer.json()["metadata"]["resourceVersion"]
    again = await http.put("/v1/rolloutjobs/j/status", json=status)
    assert again.json()["metadata"]["resourceVersion"] == version
    updated = (await put(http, "rolloutjobs", job(priority=1))).json()
    assert updated["status"]["progress"]["groups"] == 3
    bad = await http.put("/v1/rolloutjobs/j/status", json={"status": {"phase": "x"}})
    assert bad.json()["errors"][0]["field"] == "status.phase"


async def test_finalizers_hold_back_a_deletion(http: httpx2.AsyncClient) -> None:
    await put(http, "rolloutjobs", job())
    await http.put("/v1/rolloutjobs/j/finalizers", json={"finalizers": ["operator"]})
    assert (await put(http, "rolloutjobs", job(priority=3))).json()["metadata"]["finalizers"]
    deleted = await http.delete("/v1/rolloutjobs/j")
    assert deleted.status_code == 202
    assert deleted.json()["metadata"]["deletionTimestamp"]
    assert (await put(http, "rolloutjobs", job())).status_code == 409
    freed = await http.put("/v1/rolloutjobs/j/finalizers", json={"finalizers": []})
    assert freed.status_code == 200
    assert (await http.get("/v1/rolloutjobs/j")).status_code == 404
    assert (await http.delete("/v1/rolloutjobs/j")).status_code == 404
    assert (await put(http, "rolloutjobs", job())).status_code == 201


async def test_deleting_an_owner_takes_its_dependants_along(http: httpx2.AsyncClient) -> None:
    uid = (await put(http, "rolloutjobs", job())).json()["metadata"]["uid"]
    created = await put(http, "pods", pod("p1", uid))
    assert created.json()["spec"]["containers"][0]["securityContext"] == {"runAsNonRoot": True}
    await put(http, "pods", pod("p2", uid))
    await http.put("/v1/pods/p2/finalizers", json={"finalizers": ["node"]})
    assert (await http.delete("/v1/rolloutjobs/j")).status_code == 200
    (left,) = (await http.get("/v1/pods")).json()["items"]
    assert left["metadata"]["name"] == "p2"
    assert left["metadata"]["deletionTimestamp"]
    late = await put(http, "pods", pod("p3", uid))
    assert late.status_code == 409
    assert "owner" in late.json()["detail"]


async def test_changes_tell_of_creation_update_and_removal(http: httpx2.AsyncClient) -> None:
    start = await changes(http, "0")
    assert start["changed"] == []
    assert int(start["resourceVersion"]) > 0
    waiting = asyncio.create_task(changes(http, start["resourceVersion"], 20))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    await put(http, "rolloutjobs", job())
    seen = await asyncio.wait_for(waiting, 5)
    assert [(c["name"], c["object"]["spec"]["priority"]) for c in seen["changed"]] == [("j", 0)]
    await put(http, "rolloutjobs", job(priority=1))
    await put(http, "rolloutjobs", job(priority=2))
    latest = await changes(http, seen["resourceVersion"])
    assert [c["object"]["spec"]["priority"] for c in latest["changed"]] == [2]
    await http.delete("/v1/rolloutjobs/j")
    gone = await changes(http, latest["resourceVersion"])
    assert gone["changed"] == [
        {"kind": "RolloutJob", "namespace": "default", "name": "j", "object": None}
    ]
    assert (await changes(http, "0"))["changed"] == []
    assert (await changes(http, gone["resourceVersion"], kinds="Pod"))["changed"] == []
    unknown = await http.get("/v1/changes", params={"kinds": "Job"})
    assert unknown.status_code == 422


async def test_a_version_from_another_database_lists_everything(http: httpx2.AsyncClient) -> None:
    await put(http, "rolloutjobs", job())
    assert len((await changes(http, "99999", 20))["changed"]) == 1


async def test_equal_events_are_counted(http: httpx2.AsyncClient) -> None:
    event = {"kind": "RolloutJob", "name": "j", "reason": "Valid", "message": "ok"}
    for _ in range(3):
        assert (await http.post("/v1/events", json=event)).status_code == 204
    await http.post("/v1/events", json={**event, "message": "other"})
    found = (await http.get("/v1/events", params={"name": "j"})).json()["items"]
    assert [(e["message"], e["count"]) for e in found] == [("ok", 3), ("other", 1)]
    assert found[0]["firstTime"]
    assert (await http.get("/v1/events", params={"name": "x"})).json()["items"] == []


async def test_a_removed_object_takes_its_events_along(http: httpx2.AsyncClient) -> None:
    event = {"reason": "Valid", "message": "ok"}
    for name in ("p", "q"):
        await put(http, "rolloutjobs", job(name))
        await http.post("/v1/events", json={"kind": "RolloutJob", "name": name, **event})
    await http.delete("/v1/rolloutjobs/p")
    found = (await http.get("/v1/events")).json()["items"]
    assert [item["name"] for item in found] == ["q"]
