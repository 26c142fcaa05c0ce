"""The API server and our own reader of manifests agree on what is a valid resource.

Each place of a manifest that uses every field is replaced by many values, and each verdict is
asked from both. The server is more lenient in two ways, both on purpose: a null stands for a field
that is not set, and 1.0 is an integer. What it stores instead must be readable for the operator.
"""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
import yaml

from rollout_crds.base import API_VERSION
from rollout_crds.crd import definitions
from rollout_crds.manifest import ManifestError, load_manifests, validate
from rollout_crds.resources import BY_KIND
from tests.support.manifests import JOB, MISTAKES, POOL, POOL_MISTAKES

pytestmark = [pytest.mark.kubernetes, pytest.mark.timeout(300)]

Loc = tuple[str | int, ...]
STRICT = {"dryRun": "All", "fieldValidation": "Strict"}
META = {"name": "full", "namespace": "default", "labels": {"a": "b"}, "annotations": {"c": "d"}}
STAGE = {"replicas": 1, "concurrency": 2, "activeDeadlineSeconds": 3}
TASK = {
    "id": "a",
    "instruction": "b",
    "environment": {
        "image": "i",
        "files": [{"path": "/f", "content": "c", "mode": 420}],
        "setup": ["true"],
    },
    "grading": {
        **{"answer": "1", "files": [{"path": "/g"}], "command": "true", "timeoutSeconds": 5},
        "artifacts": ["/x"],
    },
    "demonstration": ["d"],
    "metadata": {"k": {"x": [1, None, 1.5]}},
}
SPECS: dict[str, tuple[str, dict[str, Any]]] = {
    "job": (
        "RolloutJob",
        {
            "tasks": {"inline": [TASK]},
            "handler": "math",
            "samplesPerTask": 2,
            "agent": {"tools": ["bash"], "systemPrompt": "s", "decoding": "sampled"},
            "llm": {
                "poolRef": {"name": "p"},
                "sampling": {
                    **{"temperature": "0.7", "topP": "0.9", "topK": 5, "maxTokens": 10},
                    **{"seed": 1, "stop": ["x"]},
                },
                "maxContextTokens": 100,
                "maxTurns": 3,
            },
            "sandbox": {
                "image": "i",
                "network": "none",
                "env": [{"name": "A", "value": "b"}],
                "workdir": "/w",
                "resources": {
                    **{"memoryMebibytes": 64, "processes": 9, "openFiles": 20},
                    **{"outputKibibytes": 2, "actionTimeoutSeconds": 3},
                },
            },
            "stages": {"init": STAGE, "run": STAGE, "eval": STAGE},
            "poolRef": {"name": "w"},
            "groups": {"minimumUsableSamples": 1},
            "retry": {"maxAttempts": 2, "backoffSeconds": 1},
            "priority": 1,
            "activeDeadlineSeconds": 10,
            "preRunningDeadlineSeconds": 10,
            "ttlSecondsAfterFinished": 1,
            "suspended": True,
            "managedBy": "example.org/other",
        },
    ),
    "launched pool": (
        "LLMPool",
        {
            "engine": "vllm",
            "model": "m",
            "tokenizer": "t",
            "logprobsMode": "raw_logprobs",
            "launch": {
                **{"modelPath": "m", "replicas": 1, "args": ["--x"], "startupTimeoutSeconds": 5},
                "env": [{"name": "A", "value": "b"}],
            },
        },
    ),
    "pool of endpoints": (
        "LLMPool",
        {"model": "m", "tokenizer": "t", "endpoints": [{"url": "http://x"}]},
    ),
    "warm pool": ("RolloutPool", {"stages": {"init": STAGE, "run": STAGE, "eval": STAGE}}),
}
OTHER_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 1, 2**31, 2**53, 2**64, 1.5, 1.0),
    *("", "x", "0", "A b", "/x", "x\n", "\U0001f600" * 256, "x" * 257, "x" * 70_000),
    *([], ["x"], ["x", "x"], [1], {}, {"zz": 1}),
)


def resource(name: str) -> dict[str, Any]:
    kind, spec = SPECS[name]
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": META, "spec": copy.deepcopy(spec)}


def places(value: Any, loc: Loc = ()) -> Iterator[Loc]:
    items = value.items() if isinstance(value, dict) else ()
    for key, child in enumerate(value) if isinstance(value, list) else items:
        yield (*loc, key)
        yield from places(child, (*loc, key))


def changed(data: dict[str, Any], loc: Loc, change: Callable[[Any, Any], None]) -> Any:
    data = json.loads(json.dumps(data))
    parent: Any = data
    for key in loc[:-1]:
        parent = parent[key]
    change(parent, loc[-1])
    return data


def bounds(kind: str, loc: Loc) -> list[Any]:
    """The first and last number or length that the schema allows, and their neighbours."""
    (version,) = definitions()[BY_KIND[kind].plural]["spec"]["versions"]
    schema = version["schema"]["openAPIV3Schema"]
    for key in loc:
        if isinstance(key, int):
            schema = schema.get("items", {})
        else:
            schema = schema.get("properties", {}).get(key, {})
    limits = [schema[name] for name in ("minimum", "maximum") if name in schema]
    lengths = [schema[name] for name in ("minLength", "maxLength") if name in schema]
    numbers = [limit + step for limit in limits for step in (-1, 0, 1)]
    return numbers + ["x" * (length + step) for length in lengths for step in (0, 1)]


def variants(data: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "unchanged", data
    for loc in places(data):
        if loc[0] in {"apiVersion", "kind"} or loc[:2] == ("metadata", "namespace"):
            continue
        where = ".".join(map(str, loc))
        yield f"{where} removed", changed(data, loc, lambda parent, key: parent.__delitem__(key))
        for value in [*OTHER_VALUES, *bounds(data["kind"], loc)]:
            what = f"{where} = {json.dumps(value)[:30]}"
            yield what, changed(data, loc, lambda p, key, v=value: p.__setitem__(key, v))  # type: ignore[misc]


def ask(api: httpx2.Client, data: Any) -> httpx2.Response:
    path = f"/apis/{API_VERSION}/namespaces/default/{BY_KIND[data['kind']].plural}"
    return api.post(path, json=data, params=STRICT)


def accepted_here(data: Any) -> bool:
    try:
        load_manifests(json.dumps(data, ensure_ascii=False))
    except ManifestError:
        return False
    return True


def is_lenience(what: str) -> bool:
    return what.endswith((" = null", " = 1.0"))


@pytest.mark.parametrize("name", SPECS)
def test_the_server_and_our_reader_give_the_same_verdict(api: httpx2.Client, name: str) -> None:
    verdicts: list[tuple[str, bool, bool]] = []
    for what, data in variants(resource(name)):
        answer = ask(api, data)
        assert answer.status_code in {201, 400, 422}, f"{what}: {answer.text}"
        verdicts.append((what, accepted_here(data), answer.status_code == httpx2.codes.CREATED))
        if verdicts[-1][2]:
            validate(BY_KIND[data["kind"]].model, answer.json())
    assert verdicts[0] == ("unchanged", True, True)
    only_here = [what for what, here, there in verdicts if here and not there]
    only_there = [what for what, here, there in verdicts if there and not here]
    assert only_here == []
    assert [what for what in only_there if not is_lenience(what)] == []
    refused = sum(not there for _, _, there in verdicts)
    assert refused > len(verdicts) / 2


def test_every_field_of_every_kind_is_tried() -> None:
    for plural, definition in definitions().items():
        (version,) = definition["spec"]["versions"]
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        used = [spec_ for kind, spec_ in SPECS.values() if BY_KIND[kind].plural == plural]
        assert set(spec["properties"]) == {field for spec_ in used for field in spec_}


BROKEN = {
    **{name: JOB.replace(old, new, 1) for name, (old, new, _) in MISTAKES.items()},
    **{name: POOL.replace(old, new, 1) for name, (old, new, _) in POOL_MISTAKES.items()},
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_mistake_that_our_reader_explains_is_refused_by_the_server(
    api: httpx2.Client, text: str
) -> None:
    plural = "llmpools" if "kind: LLMPool" in text else "rolloutjobs"
    answer = api.post(
        f"/apis/{API_VERSION}/namespaces/default/{plural}",
        content=text,
        headers={"Content-Type": "application/yaml"},
        params=STRICT,
    )
    assert answer.status_code in {400, 422}, answer.text


RULES = {
    "two task sources": ("tasks", {"uri": "u", "inline": [{"id": "a", "instruction": "b"}]}),
    "no task source": ("tasks", {}),
    "too few samples": ("groups", {"minimumUsableSamples": 3}),
}


@pytest.mark.parametrize(("field", "value"), RULES.values(), ids=RULES)
def test_a_broken_rule_is_told_in_the_same_words(
    api: httpx2.Client, field: str, value: Any
) -> None:
    job = yaml.safe_load(JOB)
    job["spec"][field] = value
    answer = ask(api, job)
    with pytest.raises(ManifestError) as caught:
        load_manifests(json.dumps(job))
    (problem,) = caught.value.problems
    assert answer.status_code == 422
    assert problem.message in answer.json()["message"]


OTHER_SPECS: dict[str, Any] = {
    "tasks": {"uri": "file:///other.jsonl"},
    "handler": "code",
    "samplesPerTask": 3,
    "agent": {"tools": []},
    "llm": {"poolRef": {"name": "other"}},
    "sandbox": {"image": "other"},
    "stages": {"run": {"replicas": 2}},
    "poolRef": {"name": "warm"},
    "groups": {"minimumUsableSamples": 2},
    "retry": {"maxAttempts": 1},
    "priority": 1,
    "activeDeadlineSeconds": 1,
    "preRunningDeadlineSeconds": 1,
    "ttlSecondsAfterFinished": 1,
    "suspended": True,
    "managedBy": "kueue",
}


@pytest.fixture
def stored(api: httpx2.Client) -> Iterator[dict[str, Any]]:
    path = f"/apis/{API_VERSION}/namespaces/default/rolloutjobs"
    created = api.post(path, json=yaml.safe_load(JOB))
    assert created.status_code == httpx2.codes.CREATED, created.text
    yield created.json()
    api.delete(f"{path}/demo").raise_for_status()


def test_only_mutable_fields_of_a_stored_job_may_change(
    api: httpx2.Client, stored: dict[str, Any]
) -> None:
    path = f"/apis/{API_VERSION}/namespaces/default/rolloutjobs/demo"
    mutable = BY_KIND["RolloutJob"].mutable_spec_fields
    assert mutable is not None
    for field, value in OTHER_SPECS.items():
        update = {**stored, "spec": {**stored["spec"], field: value}}
        answer = api.put(path, json=update, params=STRICT)
        if field in mutable:
            assert answer.status_code == httpx2.codes.OK, f"{field}: {answer.text}"
        else:
            assert answer.status_code == 422, field
            told = f"spec.{field}: Invalid value: "
            assert told in answer.json()["message"]
            assert "must not change after creation; create another" in answer.json()["message"]
    assert api.put(path, json=stored, params=STRICT).status_code == httpx2.codes.OK


def test_the_stored_job_shows_its_defaults(stored: dict[str, Any]) -> None:
    spec = stored["spec"]
    assert spec["llm"]["sampling"]["maxTokens"] == 1024
    assert spec["stages"]["run"] == {"replicas": 1, "concurrency": 8, "activeDeadlineSeconds": 1800}
    assert spec["retry"] == {"maxAttempts": 4, "backoffSeconds": 1}
    (loaded,) = load_manifests(JOB)
    assert validate(BY_KIND["RolloutJob"].model, stored).spec == loaded.spec


def test_an_optional_field_may_not_be_added_or_taken_away_later(
    api: httpx2.Client, stored: dict[str, Any]
) -> None:
    path = f"/apis/{API_VERSION}/namespaces/default/rolloutjobs/demo"
    added = {**stored, "spec": {**stored["spec"], "managedBy": "other"}}
    assert "spec.managedBy" in api.put(path, json=added, params=STRICT).json()["message"]
