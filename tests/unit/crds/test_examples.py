"""The examples are valid, and the scripted coding agent really repairs its repository."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rollout_crds.llmpool import LLMPool
from rollout_crds.manifest import load_manifests
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.task import Task, TaskFile
from rollout_crds.taskfile import read_tasks

EXAMPLES = Path(__file__).parents[3] / "examples"
MANIFESTS = sorted(EXAMPLES.glob("*/*.yaml"))


def job_and_pool(path: Path) -> tuple[RolloutJob, LLMPool]:
    pool, job = load_manifests(path)
    assert isinstance(job, RolloutJob)
    assert isinstance(pool, LLMPool)
    return job, pool


def tasks_of(path: Path) -> list[Task]:
    job, _ = job_and_pool(path)
    assert job.spec.tasks.uri is not None
    lines = (path.parent / job.spec.tasks.uri).read_text().splitlines()
    tasks = list(read_tasks(lines))
    assert [task for task in tasks if not isinstance(task, Task)] == []
    return [task for task in tasks if isinstance(task, Task)]


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.parent.name)
class TestEachExample:
    def test_it_is_valid_and_runs_on_the_pool_beside_it(self, path: Path) -> None:
        job, pool = job_and_pool(path)
        assert job.metadata.name == path.parent.name
        assert job.spec.llm.pool_ref.name == pool.metadata.name
        assert tasks_of(path)

    def test_its_first_two_lines_say_what_it_is_and_how_to_run_it(self, path: Path) -> None:
        what, how = path.read_text().splitlines()[:2]
        assert what.startswith("# ")
        relative = path.relative_to(EXAMPLES.parent)
        assert how.startswith(f"# Run it:  rolloutctl run -f {relative}")

    def test_a_rollout_fits_the_context_of_the_engine(self, path: Path) -> None:
        job, pool = job_and_pool(path)
        assert pool.spec.launch is not None
        assert f"--max-model-len={max(4096, job.spec.llm.max_context_tokens)}" in (
            pool.spec.launch.args
        )


def test_examples_of_one_pool_declare_it_alike() -> None:
    pools: dict[str, LLMPool] = {}
    for path in MANIFESTS:
        _, pool = job_and_pool(path)
        assert pools.setdefault(pool.metadata.name, pool) == pool


def test_maths_tasks_have_answers_and_coding_tasks_have_tests() -> None:
    assert all(task.grading.answer for task in tasks_of(EXAMPLES / "math/rolloutjob.yaml"))
    for task in tasks_of(EXAMPLES / "coding/rolloutjob.yaml"):
        assert task.grading.command
        assert task.grading.files
        assert task.grading.artifacts


# The demonstration, played on this machine: the sandbox and the engine are tested elsewhere.

(TASK,) = tasks_of(EXAMPLES / "coding-demonstration/rolloutjob.yaml")


def write(files: list[TaskFile], folder: Path) -> None:
    for file in files:
        (folder / file.path).write_text(file.content)


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {
        "PATH": path,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    arguments = ["bash", "-c", command]
    return subprocess.run(arguments, cwd=folder, env=env, capture_output=True, text=True)


def command_of(turn: str) -> str:
    _, _, rest = turn.partition("<tool_call>\n")
    body, _, after = rest.partition("\n</tool_call>")
    assert after == ""
    call = json.loads(body)
    assert call["name"] == "bash"
    command: str = call["arguments"]["command"]
    return command


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    repository = tmp_path / "repository"
    repository.mkdir()
    write(TASK.environment.files, repository)
    for command in TASK.environment.setup:
        assert shell(command, repository).returncode == 0
    return repository


def graded(repository: Path, grading: Path) -> int:
    """Exit code of the grader over the declared artefacts, in a folder of its own."""
    grading.mkdir()
    write(TASK.environment.files, grading)
    for artifact in TASK.grading.artifacts:
        (grading / artifact).write_text((repository / artifact).read_text())
    write(TASK.grading.files, grading)
    assert TASK.grading.command
    return shell(TASK.grading.command, grading).returncode


def test_the_repository_as_it_is_fails(repository: Path, tmp_path: Path) -> None:
    assert graded(repository, tmp_path / "grading") == 1


def test_the_demonstration_sees_the_failure_and_repairs_it(
    repository: Path, tmp_path: Path
) -> None:
    *turns, last = TASK.demonstration
    assert [shell(command_of(turn), repository).returncode for turn in turns] == [0, 1, 0]
    assert "<tool_call>" not in last
    assert graded(repository, tmp_path / "grading") == 0


def test_changing_the_tests_does_not_help(repository: Path, tmp_path: Path) -> None:
    (repository / "test_intervals.py").write_text("def test_nothing(): pass\n")
    assert shell("python3 -m pytest -q", repository).returncode == 0
    assert graded(repository, tmp_path / "grading") == 1
