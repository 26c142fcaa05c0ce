"""Small readings and wordings of the commands."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rollout_client.cli import main
from rollout_client.cli.describe import description
from rollout_client.cli.doctor import examine, finding_line
from rollout_client.cli.failure import CliError
from rollout_client.cli.kinds import parse_object, parse_target
from rollout_client.cli.logs import LogReader, select_pods
from rollout_client.cli.node import LocalNode
from rollout_client.cli.rollouts import rollouts_table, summary_lines
from rollout_client.cli.submission import differing_fields
from rollout_client.cli.wait import parse_seconds, parse_wanted
from rollout_crds.rolloutjob import RolloutJobSpec

PODS = ["demo-init-0", "demo-run-0", "demo-run-1", "demo-2-run-0", "gateway", "p-pool-run-0"]


@pytest.mark.parametrize(
    ("name", "stage", "expected"),
    [
        ("demo-run-0", None, ["demo-run-0"]),
        ("demo", None, ["demo-init-0", "demo-run-0", "demo-run-1"]),
        ("demo", "run", ["demo-run-0", "demo-run-1"]),
        ("p", "run", ["p-pool-run-0"]),
        ("gateway", None, ["gateway"]),
        ("other", None, []),
    ],
)
def test_logs_are_those_of_a_pod_or_of_all_pods_of_a_job(
    name: str, stage: str | None, expected: list[str]
) -> None:
    assert select_pods(PODS, name, stage) == expected


def test_an_interrupt_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_arguments: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("rollout_client.cli.app.run", interrupt)
    with pytest.raises(SystemExit) as caught:
        main(["get", "rj"])
    assert caught.value.code == 130
    assert capsys.readouterr().err == ""


def test_a_state_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(CliError, match=r"cannot be written: Not a directory; .*--state-dir"):
        LocalNode(tmp_path / "file").start(tied=True)


def test_a_log_is_read_on_across_rotation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.log"
    log.write_text("one\ntwo\nthree\n")
    reader = LogReader(log, "a")
    reader.print_last(2)
    with log.open("a") as file:
        file.write("four\nhalf")
    reader.print_new()
    log.write_text("new\n")
    reader.print_new()
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["[a] two", "[a] three", "[a] four", "[a] new"]


def test_a_wait_names_a_condition_or_deletion() -> None:
    assert parse_wanted("condition=Succeeded") == ("Succeeded", "True")
    assert parse_wanted("condition=Ready=false") == ("Ready", "False")
    assert parse_wanted("delete") is None
    with pytest.raises(CliError, match="write condition=TYPE"):
        parse_wanted("Succeeded")


def test_timeouts_have_units() -> None:
    assert [parse_seconds(t) for t in ("5", "90s", "10m", "2h")] == [5, 90, 600, 7200]
    with pytest.raises(CliError, match="--timeout=soon"):
        parse_seconds("soon")


def test_objects_are_named_in_two_ways() -> None:
    assert parse_object("rj", "a") == parse_object("rj/a")
    assert parse_target("rj")[1] is None
    for words in (("rj",), ("rj/a", "b"), ("nothing", "a")):
        with pytest.raises(CliError) as caught:
            parse_object(*words)
        assert caught.value.exit_code == 2


def rollout(outcome: str | None, **fields: Any) -> dict[str, Any]:
    state = "finished" if outcome else "running"
    return {
        "task_id": "a", "sample_index": 0, "stage": "run", "state": state, "outcome": outcome,
        **fields,
    }  # fmt: skip


FAILURE = {"stage": "run", "reason": "ModelUnavailable", "message": "no answer", "attempt": 1}


def test_the_mean_reward_counts_scored_rollouts_alone() -> None:
    items = [
        rollout("scored", reward=1.0, trainable=True),
        rollout("scored", reward=0.0),
        rollout("infra_error", failure=FAILURE),
        rollout("infra_error", failure=FAILURE),
    ]
    assert summary_lines(items) == [
        "2 of 4 rollouts scored, mean reward 0.5, 1 trainable",
        "2 infra_error",
        "  2 x ModelUnavailable in run: no answer",
    ]
    assert summary_lines([]) == ["0 of 0 rollouts scored, 0 trainable"]


def test_an_infrastructure_failure_shows_no_reward() -> None:
    row = rollouts_table([rollout("infra_error", failure=FAILURE)]).splitlines()[1].split()
    assert row[:4] == ["a", "0", "infra_error", "-"]
    assert row[-2:] == ["run:", "ModelUnavailable"]


def test_a_table_has_no_column_that_tells_nothing() -> None:
    def header(*items: dict[str, Any]) -> list[str]:
        return rollouts_table(items).splitlines()[0].split()

    scored, failed, running = (
        rollout("scored"),
        rollout("infra_error", failure=FAILURE),
        rollout(None),
    )
    assert {"STATE", "FAILURE"}.isdisjoint(header(scored))
    assert "FAILURE" in header(scored, failed)
    assert "STATE" in header(scored, running)


def test_an_unfinished_rollout_tells_why_it_is_tried_again() -> None:
    row = rollouts_table([rollout(None, failure=FAILURE)]).splitlines()[1]
    assert row.endswith("run: ModelUnavailable in attempt 1, tried again")


def test_words_from_outside_do_not_steer_the_terminal() -> None:
    hostile = {**FAILURE, "message": "\x1b[2J\x9b31m\u202egone\r\nline"}
    text = "\n".join(summary_lines([rollout("infra_error", failure=hostile)]))
    assert "\\x1b[2J\\x9b31m\\u202egone line" in text
    table = rollouts_table([{**rollout(None), "task_id": "a\x1b]0;title\x07"}])
    assert table.splitlines()[1].startswith("a\\x1b]0;title\\x07")


def test_a_description_has_conditions_progress_failures_and_events() -> None:
    item = {
        "kind": "RolloutJob",
        "metadata": {"name": "demo", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"handler": "math", "tasks": {"inline": [{"id": "a"}, {"id": "b"}]}, "stop": []},
        "status": {
            "conditions": [
                {"type": "Accepted", "status": "True", "reason": "Valid", "message": "2 groups"}
            ]
        },
    }
    progress = {"rollouts": 4, "groups": 2, "finished": 1, "outcomes": {"infraError": 1}}
    events = [{"reason": "Valid", "message": "taken", "count": 3}]
    rollouts = [rollout("infra_error", failure=FAILURE), rollout(None, failure=FAILURE)]
    text = description(item, events, progress, rollouts, datetime.now(UTC))
    for part in (
        "tasks.inline: 2 tasks",
        "handler: math",
        "2 groups",
        "finished 1 of 4 rollouts in 2 groups: 1 infra_error",
        "Failures:\n  1 x ModelUnavailable in run: no answer",
        "Tried again:\n  1 x ModelUnavailable in run: no answer",
        "taken (x3)",
    ):
        assert part in text
    assert "stop" not in text


def test_differences_of_specs_are_named_as_in_the_manifest() -> None:
    spec = RolloutJobSpec.model_validate(
        {
            "tasks": {"uri": "file:///t"},
            "handler": "math",
            "llm": {"poolRef": {"name": "m"}},
            "sandbox": {"image": "i"},
        }
    )
    other = spec.model_copy(update={"samples_per_task": 2, "suspended": True})
    assert differing_fields(spec, other) == ["spec.samplesPerTask"]
    assert differing_fields(spec, spec) == []


def test_the_doctor_names_a_remedy_for_each_missing_piece(tmp_path: Path) -> None:
    env = {"ROLLOUT_CACHE": str(tmp_path / "cache")}
    findings = {f.name: f for f in examine(tmp_path / "state", env, lambda _name: None)}
    assert findings["python"].found
    for name in ("apptainer or bwrap", "images", "models", "vllm-python"):
        assert not findings[name].found
        assert "hack.setup" in finding_line(findings[name])
    assert findings["state directory"].found == str(tmp_path / "state")


def test_the_doctor_refuses_a_state_directory_too_long_for_a_socket(tmp_path: Path) -> None:
    state = tmp_path / ("x" * 100)
    finding = next(f for f in examine(state, {}, lambda _n: None) if f.name == "state directory")
    assert "too long" in finding_line(finding)
