"""A bad manifest is refused with lines that name file, line, object, field and remedy."""

from pathlib import Path

import pytest

from rollout_crds.llmpool import LLMPool
from rollout_crds.manifest import ManifestError, load_manifests
from rollout_crds.rolloutjob import RolloutJob
from tests.support.manifests import JOB, MISTAKES, POOL, POOL_MISTAKES


def problems(text: str) -> list[str]:
    with pytest.raises(ManifestError) as caught:
        load_manifests(text, "job.yaml")
    return str(caught.value).splitlines()


def test_a_good_manifest_becomes_its_resources_in_order() -> None:
    job, pool = load_manifests(f"---\n{JOB}---\n\n---\n{POOL}")
    assert isinstance(job, RolloutJob)
    assert isinstance(pool, LLMPool)
    assert (job.metadata.name, job.spec.samples_per_task) == ("demo", 2)
    assert job.spec.llm.sampling.temperature == "0.7"


@pytest.mark.parametrize(("old", "new", "line"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_its_place_and_remedy(old: str, new: str, line: str) -> None:
    assert old in JOB
    assert problems(JOB.replace(old, new, 1)) == [f"job.yaml:{line}"]


@pytest.mark.parametrize(("old", "new", "line"), POOL_MISTAKES.values(), ids=POOL_MISTAKES.keys())
def test_a_mistake_in_a_pool_is_named(old: str, new: str, line: str) -> None:
    assert problems(POOL.replace(old, new, 1)) == [f"job.yaml:{line}"]


NOT_A_MANIFEST = {
    "empty": ("", "1: has no resource in it"),
    "only comments": ("# nothing\n---\n", "1: has no resource in it"),
    "not a mapping": ("- 1", "1: must be a resource (a mapping), got a list"),
    "an open bracket": ("a: [", "2: not valid YAML: did not find expected node content"),
    "a tab": ("a:\n\tb: 1", "2: not valid YAML: found character that cannot start any token"),
    "an unknown alias": ("a: *b", "1: not valid YAML: found undefined alias"),
    "a merge key": ("<<: {}", "1: merge keys (`<<`) are not supported; write the fields out"),
    "a key that is no string": ("1: 2", "1: a key must be a string, got 1; put it in quotes"),
    "a Python object": ("a: !!python/name:os.system x", "must not use the tag"),
    "a loop": ("&a [*a]", "1: must not contain itself through an alias"),
    "deep nesting": ("[" * 5000, "1: not valid YAML: exceeded maximum nesting depth"),
    "too large": ("a: " + "x" * 2**22, "1: must be at most 4 MiB; keep tasks in a JSONL file"),
}


@pytest.mark.parametrize(("text", "line"), NOT_A_MANIFEST.values(), ids=NOT_A_MANIFEST.keys())
def test_what_is_no_manifest_is_refused_in_one_line(text: str, line: str) -> None:
    (problem,) = problems(text)
    assert line in problem


def test_aliases_that_multiply_are_refused_without_expanding_them() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    (problem,) = problems("\n".join(lines))
    assert "must have at most 200000 values, aliases expanded" in problem


def test_a_plain_alias_is_read() -> None:
    text = JOB.replace("name: demo", "name: &name demo\n  labels: {job: *name}")
    (job,) = load_manifests(text)
    assert job.metadata.labels == {"job": "demo"}


def test_all_errors_of_all_documents_come_at_once_in_the_order_of_their_lines() -> None:
    bad_job = JOB.replace("samplesPerTask: 2", "samplesPerTask: 0").replace("image:", "imag:")
    bad_pool = POOL.replace("modelPath", "modelpath")
    assert [line.split(": ")[2] for line in problems(f"{bad_pool}---\n{bad_job}")] == [
        "spec.launch.modelPath",
        "spec.launch.modelpath",
        "spec.samplesPerTask",
        "spec.sandbox.image",
        "spec.sandbox.imag",
    ]


def test_the_same_object_twice_is_refused_but_not_in_two_namespaces() -> None:
    assert problems(f"{POOL}---\n{POOL}") == [
        "job.yaml:10: LLMPool/tiny: must be defined once; it is also on line 1"
    ]
    other = POOL.replace("name: tiny", "name: tiny\n  namespace: other", 1)
    assert len(load_manifests(f"{POOL}---\n{other}")) == 2


def test_what_the_store_added_is_accepted_again() -> None:
    added = "uid: abc\n  creationTimestamp: 2026-01-31T12:00:00Z\n  managedFields: []"
    (job,) = load_manifests(JOB.replace("name: demo", f"name: demo\n  {added}"))
    assert job.metadata.creation_timestamp is not None
    assert job.metadata.creation_timestamp.isoformat() == "2026-01-31T12:00:00+00:00"


def test_a_file_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(JOB.replace("samplesPerTask: 2", "samplesPerTask: 0"))
    with pytest.raises(ManifestError, match=rf"^{path}:9: RolloutJob/demo: spec.samplesPerTask"):
        load_manifests(path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    missing, binary = tmp_path / "missing.yaml", tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ManifestError, match="cannot be read: No such file or directory"):
        load_manifests(missing)
    with pytest.raises(ManifestError, match="is not text in UTF-8"):
        load_manifests(binary)
