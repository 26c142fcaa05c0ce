"""The committed CustomResourceDefinitions follow the Kubernetes API conventions.

The rules are those of kube-api-linter and of structural schemas, applied to the generated YAML.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import celpy
import pytest
import yaml

from rollout_crds import generate

Schema = dict[str, Any]

FOLDER = Path(__file__).parents[3] / "crds"
FILES = sorted(FOLDER.glob("*.yaml"))
CRDS: dict[str, Any] = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}
ROOTS: dict[str, Schema] = {
    name: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"] for name, crd in CRDS.items()
}
REASONED_BOOLEANS = {
    ".spec.suspended": "the word that Job and CronJob users know, in its declarative form",
    ".status.backends[].healthy": "a row of a table; the pool's condition has the reason",
}
FREE_JSON = {".spec.tasks.inline[].metadata.*": "passed through unread"}


def walk(schema: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from walk(schema["additionalProperties"], f"{path}.*")


def all_places() -> Iterator[tuple[str, str, Schema]]:
    for name, root in ROOTS.items():
        for part in ("spec", "status"):
            for path, schema in walk(root["properties"][part], f".{part}"):
                yield name, path, schema


PLACES = list(all_places())


def offenders(breaks: Any) -> list[str]:
    return [f"{name}{path}" for name, path, schema in PLACES if breaks(path, schema)]


def test_the_files_are_what_the_models_say() -> None:
    assert [str(path) for path in generate.drifted(FOLDER)] == []


def test_a_changed_missing_or_left_over_file_is_drift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generate.main(["--folder", str(tmp_path)]) == 0
    assert generate.main(["--folder", str(tmp_path), "--check"]) == 0
    (tmp_path / "llmpools.yaml").unlink()
    (tmp_path / "rolloutjobs.yaml").write_text("changed")
    (tmp_path / "old.yaml").touch()
    assert generate.main(["--folder", str(tmp_path), "--check"]) == 1
    told = re.findall(r"(\w+\.yaml): differs", capsys.readouterr().out)
    assert told == ["llmpools.yaml", "old.yaml", "rolloutjobs.yaml"]
    assert generate.main(["--folder", str(tmp_path)]) == 0
    assert generate.drifted(tmp_path) == []


def test_each_kind_has_its_file() -> None:
    assert list(CRDS) == ["llmpools", "rolloutjobs", "rolloutpools"]
    assert [path.read_text().count("\nkind: CustomResourceDefinition") for path in FILES] == [1] * 3


def test_schemas_are_structural() -> None:
    allowed = {
        *("type", "format", "description", "default", "enum", "pattern", "required"),
        *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
        *("maxProperties", "properties", "additionalProperties", "items"),
        *("x-kubernetes-validations", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"),
        "x-kubernetes-preserve-unknown-fields",
    }
    assert offenders(lambda _, s: s.keys() - allowed) == []
    assert offenders(lambda _, s: {"properties", "additionalProperties"} <= s.keys()) == []
    free = offenders(lambda _, s: "x-kubernetes-preserve-unknown-fields" in s)
    assert free == [f"rolloutjobs{path}" for path in FREE_JSON]
    assert offenders(lambda path, s: "type" not in s and path not in FREE_JSON) == []


def test_metadata_restricts_nothing_but_the_name() -> None:
    for root in ROOTS.values():
        metadata = root["properties"]["metadata"]
        assert metadata["type"] == "object"
        assert list(metadata["properties"]) == ["name"]
        assert metadata["properties"]["name"]["maxLength"] == 63


def test_every_field_is_documented() -> None:
    assert offenders(lambda path, s: path[-1] not in "]*" and not s.get("description")) == []
    assert offenders(lambda _, s: "\n" in s.get("description", "")) == []


def test_everything_is_bounded() -> None:
    def unbounded(_: str, schema: Schema) -> bool:
        match schema.get("type"):
            case "string":
                bounded = "maxLength" in schema or "enum" in schema
                return not bounded and schema.get("format") != "date-time"
            case "array":
                return "maxItems" not in schema
            case "integer":
                return not {"minimum", "maximum"} <= schema.keys()
            case "object":
                return "additionalProperties" in schema and "maxProperties" not in schema
        return False

    assert offenders(unbounded) == []


def test_there_are_no_floats_nulls_phases_or_unexplained_booleans() -> None:
    assert offenders(lambda _, s: s.get("type") == "number") == []
    assert offenders(lambda _, s: "nullable" in s) == []
    assert offenders(lambda path, _: path.lower().endswith(".phase")) == []
    booleans = {path for _, path, schema in PLACES if schema.get("type") == "boolean"}
    assert booleans == set(REASONED_BOOLEANS)


def test_names_are_camel_case_and_carry_their_units() -> None:
    def bad_name(path: str, _: Schema) -> bool:
        return re.fullmatch(r"[a-z][A-Za-z0-9]*|.*(\[\]|\*)", path.rsplit(".", 1)[-1]) is None

    def time_without_unit(path: str, schema: Schema) -> bool:
        timed = re.search(r"(timeout|deadline|backoff|ttl|period|duration)", path, re.IGNORECASE)
        return schema.get("type") == "integer" and bool(timed) and "Seconds" not in path

    assert offenders(bad_name) == []
    assert offenders(time_without_unit) == []
    assert offenders(lambda path, _: path.lower().endswith("stamp")) == []
    assert offenders(lambda path, s: s.get("format") == "date-time" and path[-4:] != "Time") == []


def test_a_field_with_a_default_is_optional_and_its_default_is_valid() -> None:
    def invalid_default(_: str, schema: Schema) -> bool:
        default = schema.get("default")
        if isinstance(default, str) and "pattern" in schema:
            return re.search(schema["pattern"], default) is None
        if isinstance(default, int) and schema["type"] == "integer":
            return not schema["minimum"] <= default <= schema["maximum"]
        return "enum" in schema and default is not None and default not in schema["enum"]

    def required_default(_: str, schema: Schema) -> bool:
        required = schema.get("required", ())
        return any("default" in schema["properties"][name] for name in required)

    assert offenders(invalid_default) == []
    assert offenders(required_default) == []


def test_lists_say_how_they_are_merged_and_keys_are_required() -> None:
    def bad_list(_: str, schema: Schema) -> bool:
        if schema.get("type") != "array":
            return False
        keys = schema.get("x-kubernetes-list-map-keys", [])
        kind = schema.get("x-kubernetes-list-type")
        has_keys = all(key in schema["items"].get("required", ()) for key in keys)
        return kind not in {"atomic", "set", "map"} or (kind == "map") != bool(keys) or not has_keys

    assert offenders(bad_list) == []
    assert offenders(lambda path, s: path.endswith(".env") and "map" not in str(s)) == []


@pytest.mark.parametrize("name", ROOTS)
def test_status_is_written_apart_and_holds_only_observations(name: str) -> None:
    (version,) = CRDS[name]["spec"]["versions"]
    status = ROOTS[name]["properties"]["status"]
    assert version["subresources"]["status"] == {}
    assert "required" not in status
    assert [path for path, schema in walk(status) if "default" in schema] == []
    assert {"conditions", "observedGeneration"} <= status["properties"].keys()


@pytest.mark.parametrize("name", ROOTS)
def test_conditions_have_the_shape_of_kubernetes(name: str) -> None:
    conditions = ROOTS[name]["properties"]["status"]["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]
    assert {*conditions["items"]["properties"]} == {
        *("type", "status", "reason", "message", "lastTransitionTime", "observedGeneration")
    }
    assert {"type", "status", "reason", "lastTransitionTime"} == {*conditions["items"]["required"]}


def test_rules_compile_and_tell_what_must_be() -> None:
    rules = [rule for _, _, s in PLACES for rule in s.get("x-kubernetes-validations", ())]
    assert rules
    for rule in rules:
        celpy.Environment().compile(rule["rule"])
        assert re.match(r"(`[\w.]+` )?must ", rule["message"]), rule


def at(root: Schema, json_path: str) -> Schema:
    """The schema at a path such as `.status.conditions[?(@.type=="Ready")].reason`."""
    found = root
    for part in re.sub(r"\[\?[^]]*\]", ".[]", json_path).strip(".").split("."):
        found = found["items"] if part == "[]" else found["properties"][part]
    return found


@pytest.mark.parametrize("name", ROOTS)
def test_columns_come_from_conditions_and_counters_and_end_with_the_age(name: str) -> None:
    (version,) = CRDS[name]["spec"]["versions"]
    *columns, age = version["additionalPrinterColumns"]
    assert (age["jsonPath"], age["type"]) == (".metadata.creationTimestamp", "date")
    assert columns[0]["jsonPath"].startswith(".status.conditions[?(@.type==")
    assert [at(ROOTS[name], c["jsonPath"])["type"] for c in columns] == [c["type"] for c in columns]


@pytest.mark.parametrize("name", ROOTS)
def test_selectable_fields_exist_and_are_scalars(name: str) -> None:
    (version,) = CRDS[name]["spec"]["versions"]
    fields = [field["jsonPath"] for field in version.get("selectableFields", ())]
    assert all(at(ROOTS[name], field)["type"] in {"string", "integer"} for field in fields)


def test_names_do_not_collide() -> None:
    names = [crd["spec"]["names"] for crd in CRDS.values()]
    words = [n[k] for n in names for k in ("plural", "singular")]
    words += [short for n in names for short in n["shortNames"]]
    assert len(set(words)) == len(words)
    assert not {"rollout", "rollouts", "ro"} & set(words)
    assert {tuple(n["categories"]) for n in names} == {("rollout-operator",)}
