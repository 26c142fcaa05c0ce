"""A bad manifest is refused with lines that name file, line, object, field and remedy."""

from pathlib import Path

import pytest

from rollout_crds.llmpool import LLMPool
from rollout_crds.manifest import ManifestError, load_manifests
from rollout_crds.rolloutjob import RolloutJob

JOB = """\
apiVersion: rollout-operator.dev/v1alpha1
kind: RolloutJob
metadata:
  name: demo
spec:
  handler: math
  tasks:
    uri: tasks.jsonl
  samplesPerTask: 2
  llm:
    poolRef:
      name: tiny
    sampling:
      temperature: "0.7"
  sandbox:
    image: python
"""
POOL = """\
apiVersion: rollout-operator.dev/v1alpha1
kind: LLMPool
metadata:
  name: tiny
spec:
  model: tiny
  launch:
    modelPath: tiny
"""


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


# One row per mistake: what to replace in JOB, by what, and the one line that must come out.
MISTAKES = {
    "unknown field": (
        "samplesPerTask: 2",
        "samplePerTask: 2",
        "9: RolloutJob/demo: spec.samplePerTask: unknown field; did you mean `samplesPerTask`? "
        "valid fields: activeDeadlineSeconds, agent, groups, handler, llm, managedBy, poolRef, "
        "preRunningDeadlineSeconds, priority, retry, samplesPerTask, sandbox, stages, suspended, "
        "tasks, ttlSecondsAfterFinished",
    ),
    "Python's spelling of a field": (
        "sampling:",
        "max_turns: 3\n    sampling:",
        "13: RolloutJob/demo: spec.llm.max_turns: unknown field; did you mean `maxTurns`? "
        "valid fields: maxContextTokens, maxTurns, poolRef, sampling",
    ),
    "unknown field unlike any other": (
        "name: tiny",
        "name: tiny\n      zzz: 1",
        "13: RolloutJob/demo: spec.llm.poolRef.zzz: unknown field; valid fields: name",
    ),
    "wrong type": (
        "samplesPerTask: 2",
        "samplesPerTask: 'x'",
        "9: RolloutJob/demo: spec.samplesPerTask: must be an integer, got the string 'x'",
    ),
    "a quoted number": (
        "samplesPerTask: 2",
        'samplesPerTask: "2"',
        "9: RolloutJob/demo: spec.samplesPerTask: must be an integer, got the string '2'",
    ),
    "a fraction for an integer": (
        "samplesPerTask: 2",
        "samplesPerTask: 2.5",
        "9: RolloutJob/demo: spec.samplesPerTask: must be an integer, got the number 2.5",
    ),
    "unquoted decimal": (
        'temperature: "0.7"',
        "temperature: 0.7",
        "14: RolloutJob/demo: spec.llm.sampling.temperature: "
        'must be a string, got the number 0.7; write "0.7"',
    ),
    "a decimal that is none": (
        'temperature: "0.7"',
        "temperature: warm",
        "14: RolloutJob/demo: spec.llm.sampling.temperature: must be a number that is not "
        "negative, written as a string, such as \"0.7\", got 'warm'",
    ),
    "a fraction above 1": (
        'temperature: "0.7"',
        'topP: "1.5"',
        "14: RolloutJob/demo: spec.llm.sampling.topP: must be above 0 and at most 1, "
        "written as a string, such as \"0.95\", got '1.5'",
    ),
    "a word that YAML reads as a boolean": (
        "image: python",
        "image: on",
        "16: RolloutJob/demo: spec.sandbox.image: "
        "must be a string, got the boolean true; put it in quotes",
    ),
    "two task sources": (
        "uri: tasks.jsonl",
        "uri: tasks.jsonl\n    inline: [{id: a, instruction: b}]",
        "7: RolloutJob/demo: spec.tasks: must set exactly one of `inline` and `uri`",
    ),
    "no task source": (
        "    uri: tasks.jsonl",
        "    {}",
        "7: RolloutJob/demo: spec.tasks: must set exactly one of `inline` and `uri`",
    ),
    "the same task twice": (
        "uri: tasks.jsonl",
        "inline: [{id: a, instruction: b}, {id: a, instruction: c}]",
        "8: RolloutJob/demo: spec.tasks.inline: must not repeat `id` 'a'",
    ),
    "a bad task in a list": (
        "uri: tasks.jsonl",
        "inline:\n      - id: a\n        instruction: b\n      - id: c\n        instruction: ''",
        "12: RolloutJob/demo: spec.tasks.inline[1].instruction: must not be empty",
    ),
    "zero samples": (
        "samplesPerTask: 2",
        "samplesPerTask: 0",
        "9: RolloutJob/demo: spec.samplesPerTask: must be greater than or equal to 1, got 0",
    ),
    "more usable samples than samples": (
        "samplesPerTask: 2",
        "groups: {minimumUsableSamples: 3}",
        "5: RolloutJob/demo: spec: `groups.minimumUsableSamples` must be less than or equal to "
        "`samplesPerTask`",
    ),
    "a value outside its set": (
        "image: python",
        "image: python\n    network: nome",
        "17: RolloutJob/demo: spec.sandbox.network: must be `none`, got the string 'nome'",
    ),
    "a tool that does not exist": (
        "handler: math",
        "handler: math\n  agent: {tools: [ipyton]}",
        "7: RolloutJob/demo: spec.agent.tools[0]: must be one of `bash`, `ipython`, "
        "got the string 'ipyton'; did you mean `ipython`?",
    ),
    "a missing field": (
        "      name: tiny",
        "      {}",
        "11: RolloutJob/demo: spec.llm.poolRef.name: must be set",
    ),
    "a scalar for a mapping": (
        "    poolRef:\n      name: tiny",
        "    poolRef: tiny",
        "11: RolloutJob/demo: spec.llm.poolRef: must be a mapping, got the string 'tiny'",
    ),
    "nothing for a mapping": (
        "    image: python",
        "",
        "15: RolloutJob/demo: spec.sandbox: must be a mapping, got nothing (null)",
    ),
    "a bad name": (
        "name: demo",
        "name: Demo_1",
        "4: RolloutJob/Demo_1: metadata.name: must consist of lower-case letters, digits and `-`, "
        "without a `-` at either end, got 'Demo_1'",
    ),
    "misspelt metadata": (
        "name: demo",
        "name: demo\n  lables: {a: b}",
        "5: RolloutJob/demo: metadata.lables: unknown field; did you mean `labels`? valid fields: "
        "annotations, creationTimestamp, deletionGracePeriodSeconds, deletionTimestamp, "
        "finalizers, generateName, generation, labels, managedFields, name, namespace, "
        "ownerReferences, resourceVersion, selfLink, uid",
    ),
    "a label that Kubernetes refuses": (
        "name: demo",
        "name: demo\n  labels: {owner: a team}",
        "5: RolloutJob/demo: metadata.labels.owner: must consist of letters, digits and `- _ .`, "
        "with a letter or digit at either end, got 'a team'",
    ),
    "a label's key that Kubernetes refuses": (
        "name: demo",
        "name: demo\n  labels:\n    example.org/a/b: c",
        "6: RolloutJob/demo: metadata.labels[example.org/a/b]: the key of a label must be a name "
        "of at most 63 letters, digits and `- _ .`, with or without a `domain/` in front, "
        "got 'example.org/a/b'",
    ),
    "a key twice": (
        "handler: math",
        "handler: math\n  handler: code",
        "7: RolloutJob/demo: spec.handler: must be set once; it is also on line 6",
    ),
    "a number that JSON lacks": (
        "uri: tasks.jsonl",
        "inline: [{id: a, instruction: b, metadata: {x: .inf}}]",
        "8: RolloutJob/demo: spec.tasks.inline[0].metadata.x: must be a finite number, got inf",
    ),
    "unknown kind": (
        "kind: RolloutJob",
        "kind: RolloutJobs",
        "2: RolloutJobs/demo: kind: must be one of `RolloutJob`, `RolloutPool`, `LLMPool`, "
        "got the string 'RolloutJobs'; did you mean `RolloutJob`?",
    ),
    "a kind that people do not write": (
        "kind: RolloutJob",
        "kind: Pod",
        "2: Pod/demo: kind: must be one of `RolloutJob`, `RolloutPool`, `LLMPool`, "
        "got the string 'Pod'",
    ),
    "another version": (
        "dev/v1alpha1",
        "dev/v1",
        "1: RolloutJob/demo: apiVersion: must be `rollout-operator.dev/v1alpha1`, "
        "got the string 'rollout-operator.dev/v1'",
    ),
    "no kind": (
        "kind: RolloutJob\n",
        "",
        "1: kind: must be set to RolloutJob or RolloutPool or LLMPool",
    ),
}


@pytest.mark.parametrize(("old", "new", "line"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named_with_its_place_and_remedy(old: str, new: str, line: str) -> None:
    assert old in JOB
    assert problems(JOB.replace(old, new, 1)) == [f"job.yaml:{line}"]


POOL_MISTAKES = {
    "two kinds of backends": (
        "  model: tiny\n",
        "  model: tiny\n  endpoints: [{url: 'http://x'}]\n",
        "5: LLMPool/tiny: spec: must set exactly one of `endpoints` and `launch`",
    ),
    "endpoints without a tokenizer": (
        "  launch:\n    modelPath: tiny\n",
        "  endpoints: [{url: 'http://x'}]\n",
        "5: LLMPool/tiny: spec: must set `tokenizer` when `endpoints` is set: a directory with "
        "tokenizer.json",
    ),
    "a URL without a scheme": (
        "  launch:\n    modelPath: tiny\n",
        "  tokenizer: tiny\n  endpoints: [{url: 'gpu:8000'}]\n",
        "8: LLMPool/tiny: spec.endpoints[0].url: must start with `http://`, `https://` or "
        "`unix:///`, got 'gpu:8000'",
    ),
}


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
