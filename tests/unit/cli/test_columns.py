"""What the tables of `get` show."""

from datetime import UTC, datetime
from typing import Any

from rollout_client.cli.columns import COLUMNS, table_of
from rollout_client.cli.kinds import KINDS, find_kind
from rollout_crds import resources

NOW = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
METADATA = {"name": "demo", "creationTimestamp": "2026-01-01T00:00:00Z"}


def job(conditions: list[dict[str, str]], **metadata: object) -> dict[str, Any]:
    return {
        "metadata": {**METADATA, **metadata},
        "spec": {"llm": {"poolRef": {"name": "m"}}, "handler": "math"},
        "status": {
            "conditions": conditions,
            "progress": {"rollouts": 8, "finished": 3, "outcomes": {"scored": 2, "infraError": 1}},
        },
    }


def cells(item: dict[str, Any], kind: str = "RolloutJob", *, wide: bool = False) -> dict[str, str]:
    header, rows = table_of(kind, [item], NOW, wide=wide)
    return dict(zip(header, rows[0], strict=True))


def test_the_names_of_kinds_are_those_of_the_resources() -> None:
    ours = [(k.kind, k.plural, k.short_name) for k in KINDS]
    assert ours == [(k.kind, k.plural, k.short_name) for k in resources.KINDS]
    assert set(COLUMNS) == {k.kind for k in KINDS}
    assert {find_kind(w).kind for w in ("rj", "RolloutJob", "rolloutjobs")} == {"RolloutJob"}


def test_a_running_job_shows_its_progress() -> None:
    running = [
        {"type": "Accepted", "status": "True", "reason": "Valid"},
        {"type": "Progressing", "status": "True", "reason": "RolloutsRunning"},
        {"type": "Succeeded", "status": "Unknown", "reason": "RolloutsRunning"},
    ]
    assert cells(job(running)) == {
        "NAME": "demo",
        "SUCCEEDED": "Unknown",
        "REASON": "RolloutsRunning",
        "FINISHED": "3/8",
        "SCORED": "2",
        "AGE": "1m",
    }


def test_a_waiting_job_shows_what_it_waits_for() -> None:
    waiting = [
        {"type": "Progressing", "status": "False", "reason": "WaitingForLLMPool"},
        {"type": "Succeeded", "status": "Unknown", "reason": "RolloutsRunning"},
    ]
    assert cells(job(waiting))["REASON"] == "WaitingForLLMPool"


def test_an_ended_job_shows_how_it_ended() -> None:
    ended = [
        {"type": "Progressing", "status": "False", "reason": "GroupsFailed"},
        {"type": "Succeeded", "status": "False", "reason": "GroupsFailed"},
    ]
    assert cells(job(ended))["SUCCEEDED"] == "False"
    deleting = job(ended, deletionTimestamp="2026-01-01T00:00:30Z")
    assert cells(deleting)["REASON"] == "Deleting"


def test_wide_adds_columns() -> None:
    assert cells(job([]), wide=True)["INFRA-ERRORS"] == "1"


def test_an_object_without_status_has_a_row() -> None:
    pod = {"metadata": METADATA, "spec": {"containers": []}}
    assert cells(pod, "Pod")["PHASE"] == "Pending"
    pool = {"metadata": METADATA, "spec": {"model": "m"}}
    assert cells(pool, "LLMPool")["BACKENDS"] == "0/0"


def test_several_namespaces_get_a_column() -> None:
    header, rows = table_of("RolloutJob", [job([]), job([], namespace="team")], NOW)
    assert header[0] == "NAMESPACE"
    assert [row[0] for row in rows] == ["default", "team"]
