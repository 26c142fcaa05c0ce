"""The pass from a model's JSON schema to a structural schema, rule by rule."""

from typing import Annotated, Literal

import pytest
from pydantic import ConfigDict, Field, JsonValue

from rollout_crds.base import ResourceModel
from rollout_crds.markers import Cel, ListMap, ListSet, rules
from rollout_crds.structural import UnsupportedSchemaError, structural_schema, without_defaults


class Part(ResourceModel):
    """A part."""

    model_config = ConfigDict(json_schema_extra=rules(Cel("self.size > 0", "must be above 0")))

    name: Annotated[str, Field(max_length=8)]
    size: int = 3


class Whole(ResourceModel):
    """A whole."""

    part: Part
    """The one
    part."""
    other_part: Part | None = None
    made_part: Part = Field(default_factory=lambda: Part(name="x", size=4))
    kind: Literal["Whole"] = "Whole"
    mode: Literal["fast", "slow"] = "fast"
    parts: Annotated[list[Part], Field(max_length=2), ListMap("name")] = Field(default_factory=list)
    words: Annotated[list[str], ListSet()] = Field(default_factory=list)
    lines: list[str] = Field(default_factory=list)
    above: Annotated[int, Field(ge=1, le=9)] = 1
    far: Annotated[int, Field(le=2**40)] = 1
    anything: dict[str, JsonValue] = Field(default_factory=dict)


PROPERTIES = structural_schema(Whole)["properties"]


def test_references_are_written_out_and_the_field_is_described_by_its_own_words() -> None:
    assert PROPERTIES["part"] == {
        "description": "The one part.",
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "maxLength": 8},
            "size": {"type": "integer", "format": "int64", "default": 3},
        },
        "x-kubernetes-validations": [{"rule": "self.size > 0", "message": "must be above 0"}],
    }


def test_an_optional_field_has_the_type_alone() -> None:
    assert PROPERTIES["otherPart"] == {**PROPERTIES["part"], "description": "A part."}


def test_only_fields_without_a_default_are_required() -> None:
    assert structural_schema(Whole)["required"] == ["part"]


def test_a_default_factory_shows_what_it_makes_beyond_the_defaults_inside() -> None:
    assert PROPERTIES["madePart"]["default"] == {"name": "x", "size": 4}
    assert "default" not in PROPERTIES["parts"]


def test_a_constant_is_an_enum_of_one() -> None:
    assert PROPERTIES["kind"] == {"type": "string", "enum": ["Whole"], "default": "Whole"}
    assert PROPERTIES["mode"]["enum"] == ["fast", "slow"]


def test_lists_say_how_they_are_merged() -> None:
    assert PROPERTIES["parts"]["x-kubernetes-list-type"] == "map"
    assert PROPERTIES["parts"]["x-kubernetes-list-map-keys"] == ["name"]
    assert PROPERTIES["words"]["x-kubernetes-list-type"] == "set"
    assert PROPERTIES["lines"]["x-kubernetes-list-type"] == "atomic"


def test_integers_say_how_wide_they_are() -> None:
    assert PROPERTIES["above"]["format"] == "int32"
    assert PROPERTIES["far"]["format"] == "int64"


def test_free_json_is_preserved() -> None:
    assert PROPERTIES["anything"] == {
        "type": "object",
        "additionalProperties": {"x-kubernetes-preserve-unknown-fields": True},
    }


def test_defaults_can_be_left_out_at_every_depth() -> None:
    assert "default" not in str(without_defaults(structural_schema(Whole)))


def test_unions_and_floats_are_refused_with_their_place() -> None:
    class Union(ResourceModel):
        port: int | str

    class Floating(ResourceModel):
        parts: dict[str, float]

    with pytest.raises(UnsupportedSchemaError, match=r"Union\.port: .* no unions"):
        structural_schema(Union)
    with pytest.raises(UnsupportedSchemaError, match=r"Floating\.parts\.\*: .* number"):
        structural_schema(Floating)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("parts", [{"name": "a"}, {"name": "a"}], "must not repeat `name` 'a'"),
        ("words", ["a", "b", "a"], "must not repeat 'a'"),
    ],
)
def test_python_checks_what_the_list_markers_promise(
    field: str, value: object, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Whole.model_validate({"part": {"name": "p"}, field: value})
