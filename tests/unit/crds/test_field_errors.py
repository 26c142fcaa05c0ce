"""Validation errors become field paths and sentences, for resources and for messages."""

import pytest
from pydantic import BaseModel, ValidationError

from rollout_crds.resources import Changes
from rollout_crds.validation import field_errors, validate
from rollout_crds.wire import Completion, LeaseRequest

COMPLETION = {"worker": "w", "incarnation": "i", "work_id": "run:1", "attempt": 1}


def errors(model: type[BaseModel], data: object) -> list[tuple[str, str]]:
    with pytest.raises(ValidationError) as caught:
        validate(model, data)
    return [(error.field, error.message) for error in field_errors(caught.value, model)]


def test_the_tag_of_a_union_is_not_part_of_the_path() -> None:
    result = {"kind": "init", "environment": {"imag": "x"}}
    assert errors(Completion, {**COMPLETION, "result": result}) == [
        ("result.environment.image", "must be set"),
        (
            "result.environment.imag",
            "unknown field; did you mean `image`? valid fields: image, layer",
        ),
    ]


def test_a_wrong_tag_names_the_right_ones() -> None:
    assert errors(Completion, {**COMPLETION, "result": {"kind": "evil"}}) == [
        (
            "result",
            "`kind` must be one of `init`, `run`, `eval`, `failed`, `handed_back`, "
            "got the string 'evil'; did you mean `eval`?",
        )
    ]
    assert errors(Completion, {**COMPLETION, "result": {}}) == [("result", "`kind` must be set")]


def test_an_enum_names_its_values() -> None:
    request = {"worker": "w", "incarnation": "i", "stage": "runn", "capacity": 1}
    message = "must be one of `init`, `run`, `eval`, got the string 'runn'; did you mean `run`?"
    assert errors(LeaseRequest, request) == [("stage", message)]


def test_a_resource_inside_a_message_keeps_its_own_path() -> None:
    pool = {"kind": "LLMPool", "metadata": {"name": "p"}, "spec": {"model": "m", "lunch": {}}}
    changed = [{"kind": "LLMPool", "namespace": "default", "name": "p", "object": pool}]
    assert errors(Changes, {"resourceVersion": "1", "changed": changed}) == [
        (
            "changed[0].object.spec.lunch",
            "unknown field; did you mean `launch`? valid fields: endpoints, engine, launch, "
            "logprobsMode, model, tokenizer",
        )
    ]


def test_without_the_model_an_unknown_field_is_still_named() -> None:
    request = {"worker": "w", "incarnation": "i", "stage": "run", "capacity": 1, "wait": 3}
    with pytest.raises(ValidationError) as caught:
        validate(LeaseRequest, request)
    (error,) = field_errors(caught.value)
    assert (error.field, error.message) == ("wait", "unknown field; remove it")
