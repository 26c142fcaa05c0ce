"""Manifests: all valid or nothing, and paths that mean the same everywhere."""

from pathlib import Path

import pytest

from rollout_client.cli.failure import CliError
from rollout_client.cli.sources import (
    Source,
    absolute_image,
    absolute_path,
    absolute_uri,
    check_task_files,
    load_sources,
)
from rollout_crds.llmpool import LLMPool
from rollout_crds.rolloutjob import RolloutJob

JOB = """
apiVersion: rollout-operator.dev/v1alpha1
kind: RolloutJob
metadata: {name: demo}
spec:
  handler: math
  tasks: {uri: data/tasks.jsonl}
  llm: {poolRef: {name: m}}
  sandbox: {image: ./image.sif}
---
apiVersion: rollout-operator.dev/v1alpha1
kind: LLMPool
metadata: {name: m}
spec: {model: m, launch: {modelPath: models/m}, tokenizer: plain-name}
"""
GOOD = '{"id": "a", "instruction": "x"}'


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(JOB)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tasks.jsonl").write_text(f"{GOOD}\n")
    return path


def job_of(sources: list[Source]) -> RolloutJob:
    return next(s.resource for s in sources if isinstance(s.resource, RolloutJob))


def test_paths_are_relative_to_the_manifests_folder(manifest: Path) -> None:
    sources = load_sources([str(manifest)])
    folder = manifest.parent
    job = job_of(sources)
    assert job.spec.tasks.uri == f"file://{folder}/data/tasks.jsonl"
    assert job.spec.sandbox.image == f"{folder}/image.sif"
    pool = sources[0].resource
    assert isinstance(pool, LLMPool)
    assert pool.spec.launch is not None
    assert (pool.spec.launch.model_path, pool.spec.tokenizer) == (
        f"{folder}/models/m",
        "plain-name",
    )


def test_pools_come_before_the_jobs_that_use_them(manifest: Path) -> None:
    kinds = [source.resource.kind for source in load_sources([str(manifest)])]
    assert kinds == ["LLMPool", "RolloutJob"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("python", "python"),
        ("/abs/x.sif", "/abs/x.sif"),
        ("../x.sif", "/x.sif"),
        ("rootfs/", "/m/rootfs"),
        ("missing.sif", "missing.sif"),
        ("docker-archive:x.tar", "docker-archive:/m/x.tar"),
        ("oci:/abs/layout", "oci:/abs/layout"),
    ],
)
def test_images_by_path_become_absolute_and_names_stay(text: str, expected: str) -> None:
    assert absolute_image(text, Path("/m")) == expected


def test_an_image_file_beside_the_manifest_is_found_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "x.sif").touch()
    assert absolute_image("x.sif", tmp_path) == str(tmp_path / "x.sif")


def test_urls_stay_and_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert absolute_uri("s3://bucket/t.jsonl", Path("/m")) == "s3://bucket/t.jsonl"
    assert absolute_uri("t.jsonl", Path("/m")) == "file:///m/t.jsonl"
    assert absolute_path("~/models/m", Path("/m")) == "/home/me/models/m"


def test_all_files_errors_are_reported_at_once(manifest: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(JOB.replace("handler: math", "handlr: math"))
    with pytest.raises(CliError) as caught:
        load_sources([str(manifest), str(bad), str(tmp_path / "none.yaml")])
    assert caught.value.exit_code == 2
    text = "\n".join(caught.value.lines)
    assert f"{bad}:6: RolloutJob/demo: spec.handlr: unknown field; did you mean `handler`?" in text
    assert "none.yaml:1: cannot be read: No such file or directory" in text


def test_an_object_in_two_files_is_an_error(manifest: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.yaml"
    other.write_text(JOB)
    with pytest.raises(CliError, match="LLMPool/m: must be defined once; also in"):
        load_sources([str(manifest), str(other)])


def test_a_broken_task_line_is_a_warning(manifest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (manifest.parent / "data" / "tasks.jsonl").write_text(f'{GOOD}\n{{"id": 3}}\n')
    monkeypatch.chdir(manifest.parent)
    (warning,) = check_task_files(load_sources(["job.yaml"]))
    assert warning.startswith("data/tasks.jsonl:2: id: must be a string, got the number 3")


def test_many_broken_lines_are_counted(manifest: Path) -> None:
    broken = "{}\n" * 30
    (manifest.parent / "data" / "tasks.jsonl").write_text(f"{GOOD}\n{broken}")
    warnings = check_task_files(load_sources([str(manifest)]))
    assert len(warnings) == 21
    assert warnings[-1].endswith("10 more broken lines")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}\n", "has no valid task"),
        ("", "has no valid task"),
        (None, "cannot be read: No such"),
    ],
)
def test_a_task_file_without_a_valid_task_is_an_error(
    manifest: Path, content: str | None, message: str
) -> None:
    tasks = manifest.parent / "data" / "tasks.jsonl"
    tasks.unlink() if content is None else tasks.write_text(content)
    with pytest.raises(CliError, match=message) as caught:
        check_task_files(load_sources([str(manifest)]))
    assert caught.value.exit_code == 2
    assert "job.yaml: RolloutJob/demo: spec.tasks.uri: " in caught.value.lines[-1]
