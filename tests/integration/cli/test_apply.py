"""apply: all or nothing, and every refusal names file, field and remedy."""

from pathlib import Path

import pytest

from tests.integration.cli.conftest import Command

LLM_POOL = """
apiVersion: rollout-operator.dev/v1alpha1
kind: LLMPool
metadata: {name: m}
spec: {model: m, tokenizer: m, endpoints: [{url: "http://127.0.0.1:9"}]}
"""
JOB = """
apiVersion: rollout-operator.dev/v1alpha1
kind: RolloutJob
metadata: {name: demo}
spec:
  handler: math
  tasks: {uri: tasks.jsonl}
  samplesPerTask: 2
  llm: {poolRef: {name: m}}
  sandbox: {image: i}
"""
TASK = '{"id": "a", "instruction": "x"}\n'


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a manifest, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "job.yaml").write_text(f"{LLM_POOL}---{JOB}")
    (tmp_path / "tasks.jsonl").write_text(TASK)
    return tmp_path


def test_apply_tells_what_it_did(ctl: Command, write: Path) -> None:
    assert ctl("apply", "-f", "job.yaml").out == "llmpools/m created\nrolloutjobs/demo created\n"
    assert ctl("apply", "-f", "job.yaml").out == (
        "llmpools/m unchanged\nrolloutjobs/demo unchanged\n"
    )
    changed = (write / "job.yaml").read_text().replace("handler:", "priority: 3\n  handler:")
    (write / "job.yaml").write_text(changed)
    assert "rolloutjobs/demo configured" in ctl("apply", "-f", "job.yaml").out


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "handler: math",
            "handler: math\n  sampelsPerTask: 2",
            "job.yaml:12: RolloutJob/demo: spec.sampelsPerTask: unknown field; "
            "did you mean `samplesPerTask`?",
        ),
        (
            "samplesPerTask: 2",
            'samplesPerTask: "two"',
            "spec.samplesPerTask: must be an integer, got the string 'two'",
        ),
        (
            "{uri: tasks.jsonl}",
            "{uri: tasks.jsonl, inline: [{id: a, instruction: x}]}",
            "spec.tasks: must set exactly one of `inline` and `uri`",
        ),
        (
            "samplesPerTask: 2",
            "samplesPerTask: 0",
            "spec.samplesPerTask: must be greater than or equal to 1, got 0",
        ),
    ],
)
def test_an_invalid_manifest_changes_nothing(
    ctl: Command, write: Path, old: str, new: str, message: str
) -> None:
    path = write / "job.yaml"
    path.write_text(path.read_text().replace(old, new))
    result = ctl("apply", "-f", "job.yaml")
    assert result.code == 2
    assert message in result.err
    assert all(line.startswith("error: job.yaml:") for line in result.err.splitlines())
    assert ctl("get", "llmp").out == "no llmpools\n"


def test_a_broken_task_line_is_a_warning_and_the_others_go_on(ctl: Command, write: Path) -> None:
    (write / "tasks.jsonl").write_text(f'{TASK}{{"id": "b"\n')
    result = ctl("apply", "-f", "job.yaml")
    assert result.code == 0
    assert result.err.startswith("warning: tasks.jsonl:2: not valid JSON")
    assert "rolloutjobs/demo created" in result.out


def test_a_missing_task_file_is_invalid_input(ctl: Command, write: Path) -> None:
    (write / "tasks.jsonl").unlink()
    result = ctl("apply", "-f", "job.yaml")
    assert result.code == 2
    assert "error: job.yaml: RolloutJob/demo: spec.tasks.uri: " in result.err
    assert ctl("get", "llmp").out == "no llmpools\n"


def test_what_was_applied_before_a_refusal_is_put_back(ctl: Command, write: Path) -> None:
    ctl("apply", "-f", "job.yaml")
    ctl("delete", "llmp", "m")
    path = write / "job.yaml"
    path.write_text(path.read_text().replace("samplesPerTask: 2", "samplesPerTask: 3"))
    result = ctl("apply", "-f", "job.yaml")
    assert result.code == 2
    assert result.err.startswith("error: job.yaml: RolloutJob/demo: spec.samplesPerTask: ")
    assert ctl("get", "llmp").out == "no llmpools\n"


def test_without_a_gateway_the_remedy_is_named(ctl: Command, tmp_path: Path) -> None:
    result = ctl("get", "rj", "--server", f"unix://{tmp_path}/none.sock")
    assert result.code == 1
    assert "start one with `rolloutctl up`" in result.err


@pytest.mark.parametrize("words", [("get",), ("get", "things"), ("gt",), ("get", "rj", "-o", "x")])
def test_wrong_usage_exits_with_2(ctl: Command, words: tuple[str, ...]) -> None:
    result = ctl(*words)
    assert result.code == 2
    assert result.err.startswith("error: ")


def test_delete_with_a_manifest_takes_all_of_it(ctl: Command, write: Path) -> None:
    ctl("apply", "-f", "job.yaml")
    assert ctl("delete", "-f", "job.yaml").out == "rolloutjobs/demo deleted\nllmpools/m deleted\n"
    again = ctl("delete", "-f", "job.yaml")
    assert (again.code, "demo" in again.err) == (1, True)
    assert ctl("delete", "-f", "job.yaml", "--ignore-not-found").code == 0


def test_the_manifest_may_come_from_standard_input(
    ctl: Command, write: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (write / "job.yaml").open() as file:
        monkeypatch.setattr("sys.stdin", file)
        assert ctl("apply", "-f", "-").code == 0
