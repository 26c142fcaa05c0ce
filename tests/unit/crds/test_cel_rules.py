"""The rules that the API server evaluates agree with what the models check."""

from collections.abc import Iterator
from typing import Any

import celpy
import pytest
from celpy.adapter import json_to_cel
from pydantic import ValidationError

from rollout_crds.crd import definitions
from rollout_crds.manifest import validate
from rollout_crds.resources import BY_KIND

JOB: dict[str, Any] = {
    "kind": "RolloutJob",
    "metadata": {"name": "j"},
    "spec": {
        "tasks": {"uri": "file:///tasks.jsonl"},
        "handler": "math",
        "llm": {"poolRef": {"name": "p"}},
        "sandbox": {"image": "python"},
    },
}
POOL: dict[str, Any] = {"kind": "LLMPool", "metadata": {"name": "p"}, "spec": {"model": "m"}}
LAUNCH = {"launch": {"modelPath": "m"}}
ENDPOINTS = {"endpoints": [{"url": "http://x"}]}


def with_spec(resource: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {**resource, "spec": {**resource["spec"], **fields}}


def schema_of(kind: str) -> dict[str, Any]:
    (version,) = definitions()[BY_KIND[kind].plural]["spec"]["versions"]
    schema: dict[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def defaulted(schema: dict[str, Any], value: Any) -> Any:
    """Fill in defaults as the API server does before it validates."""
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    filled = dict(value)
    for name, child in schema["properties"].items():
        if name not in filled and "default" in child:
            filled[name] = child["default"]
        if name in filled:
            filled[name] = defaulted(child, filled[name])
    return filled


def broken_rules(schema: dict[str, Any], new: Any, old: Any = None) -> Iterator[str]:
    """`field: message` of each rule that an object breaks, rules of change only with `old`."""
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" in rule["rule"] and old is None:
            continue
        environment = celpy.Environment()
        program = environment.program(environment.compile(rule["rule"]))
        if not program.evaluate({"self": json_to_cel(new), "oldSelf": json_to_cel(old)}):
            yield f"{rule.get('fieldPath', '')}: {rule['message']}"
    for name, child in schema.get("properties", {}).items():
        if name in new and isinstance(new[name], dict):
            yield from broken_rules(child, new[name], old.get(name) if old else None)


def refusals(resource: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    schema = schema_of(resource["kind"])
    before = defaulted(schema, old) if old else None
    return list(broken_rules(schema, defaulted(schema, resource), before))


@pytest.mark.parametrize(
    "resource",
    [
        JOB,
        with_spec(JOB, tasks={"inline": [{"id": "a", "instruction": "b"}]}),
        with_spec(JOB, samplesPerTask=4, groups={"minimumUsableSamples": 4}),
        with_spec(POOL, **LAUNCH),
        with_spec(POOL, **ENDPOINTS, tokenizer="t"),
    ],
)
def test_what_the_models_accept_the_server_accepts(resource: dict[str, Any]) -> None:
    validate(BY_KIND[resource["kind"]].model, resource)
    assert refusals(resource) == []


@pytest.mark.parametrize(
    ("resource", "message"),
    [
        (with_spec(JOB, tasks={}), "must set exactly one of `inline` and `uri`"),
        (
            with_spec(JOB, tasks={"uri": "u", "inline": [{"id": "a", "instruction": "b"}]}),
            "must set exactly one of `inline` and `uri`",
        ),
        (
            with_spec(JOB, samplesPerTask=2, groups={"minimumUsableSamples": 3}),
            "`groups.minimumUsableSamples` must be less than or equal to `samplesPerTask`",
        ),
        (with_spec(POOL, tokenizer="t"), "must set exactly one of `endpoints` and `launch`"),
        (
            with_spec(POOL, **LAUNCH, **ENDPOINTS, tokenizer="t"),
            "must set exactly one of `endpoints` and `launch`",
        ),
        (
            with_spec(POOL, **ENDPOINTS),
            "must set `tokenizer` when `endpoints` is set: a directory with tokenizer.json",
        ),
    ],
)
def test_what_the_models_refuse_the_server_refuses_in_the_same_words(
    resource: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        validate(BY_KIND[resource["kind"]].model, resource)
    assert message in str(caught.value)
    assert refusals(resource) == [f": {message}"]


OTHER_VALUES = {
    "tasks": {"uri": "file:///other.jsonl"},
    "handler": "code",
    "samplesPerTask": 2,
    "agent": {"tools": []},
    "llm": {"poolRef": {"name": "other"}},
    "sandbox": {"image": "other"},
    "stages": {"run": {"replicas": 2}},
    "placement": {"slurm": {"partition": "gpu"}},
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


def test_every_field_of_a_job_is_covered_below() -> None:
    assert set(schema_of("RolloutJob")["properties"]["spec"]["properties"]) == set(OTHER_VALUES)


@pytest.mark.parametrize(("field", "value"), OTHER_VALUES.items(), ids=OTHER_VALUES)
def test_only_the_mutable_fields_of_a_job_may_change(field: str, value: Any) -> None:
    base = with_spec(JOB, samplesPerTask=3)
    changed = with_spec(base, **{field: value})
    mutable = field in (BY_KIND["RolloutJob"].mutable_spec_fields or ())
    refused = [f".{field}: must not change after creation; create another RolloutJob"]
    assert refusals(changed, old=base) == ([] if mutable else refused)
    assert refusals(base, old=changed) == ([] if mutable else refused)
    assert refusals(changed, old=changed) == []
