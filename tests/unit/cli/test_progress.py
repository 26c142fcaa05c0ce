"""Rates, time to go, and what a job waits for."""

from datetime import UTC, datetime
from typing import Literal

import pytest
from rich.console import Console

from rollout_client.cli.display import LineDisplay, rendered
from rollout_client.cli.progress import History, Rates, View, status_line, waiting_for
from rollout_crds.llmpool import LLMPool
from rollout_crds.meta import Condition
from rollout_crds.progress import JobProgress, StageCounters, StagesCounters
from rollout_crds.rolloutjob import RolloutJob

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def progress(finished: int, *, rollouts: int = 10, tokens: int = 0) -> JobProgress:
    return JobProgress(
        rollouts=rollouts,
        groups=2,
        finished=finished,
        prompt_tokens=10 * tokens,
        output_tokens=tokens,
        stages=StagesCounters(run=StageCounters(running=1, done=finished)),
    )


def history(*samples: tuple[float, JobProgress]) -> History:
    result = History(started=0.0)
    for now, counters in samples:
        result.add(now, counters)
    return result


def test_rates_are_those_of_the_last_seconds() -> None:
    samples = [(float(t), progress(0, tokens=t * (1 if t <= 20 else 100))) for t in range(41)]
    rates = history(*samples).rates()
    assert rates.prompt == pytest.approx(1000, rel=0.01)
    assert rates.output == pytest.approx(100, rel=0.01)


def test_rates_need_two_samples_and_are_never_negative() -> None:
    assert history((0, progress(0, tokens=5))).rates() == Rates()
    assert history((0, progress(0, tokens=5)), (1, progress(0))).rates() == Rates()


def test_the_time_to_go_is_told_once_a_few_rollouts_have_finished() -> None:
    assert history((0, progress(0)), (10, progress(2))).eta_seconds() is None
    assert history((0, progress(0)), (10, progress(5))).eta_seconds() == pytest.approx(10)
    assert history((0, progress(0)), (10, progress(10))).eta_seconds() is None


def test_rollouts_of_an_earlier_run_do_not_count_as_pace() -> None:
    resumed = history((0, progress(6)), (10, progress(9)))
    assert resumed.eta_seconds() == pytest.approx(10 / 3)


def make_job(*conditions: tuple[str, Literal["True", "False", "Unknown"], str, str]) -> RolloutJob:
    spec = {
        "tasks": {"uri": "file:///t"},
        "handler": "math",
        "llm": {"poolRef": {"name": "m"}},
        "sandbox": {"image": "i"},
    }
    job = RolloutJob.model_validate({"metadata": {"name": "j"}, "spec": spec})
    job.status.conditions = [condition(*c) for c in conditions]
    return job


def condition(
    kind: str, status: Literal["True", "False", "Unknown"], reason: str, message: str
) -> Condition:
    return Condition(
        type=kind, status=status, reason=reason, message=message, last_transition_time=NOW
    )


def test_a_job_waits_for_what_its_pool_says() -> None:
    spec = {"model": "m", "launch": {"modelPath": "m"}}
    pool = LLMPool.model_validate({"metadata": {"name": "smol"}, "spec": spec})
    waiting = make_job(("Progressing", "False", "WaitingForLLMPool", "LLMPool smol is not ready"))
    assert waiting_for(waiting, None) == "LLMPool smol is not ready"
    pool.status.conditions = [condition("Ready", "False", "BackendsStarting", "vLLM starts (12 s)")]
    assert waiting_for(waiting, pool) == "LLMPool smol: vLLM starts (12 s)"


def test_a_new_job_waits_for_the_operator_and_a_running_one_for_nothing() -> None:
    assert waiting_for(make_job(), None) == "the operator"
    assert waiting_for(make_job(("Progressing", "True", "RolloutsRunning", "")), None) == ""


def test_a_job_that_has_ended_waits_for_nothing() -> None:
    ended = make_job(
        ("Progressing", "False", "Completed", ""), ("Succeeded", "True", "Completed", "")
    )
    assert waiting_for(ended, None) == ""


VIEW = View("demo", progress(3), Rates(100, 7), 65, 130, "LLMPool smol: starts")


def test_the_status_line_leaves_out_what_is_zero() -> None:
    assert status_line(VIEW) == (
        "1m5s | init - | run 1 running, 3 done | eval - | finished 3/10 | "
        "100 tokens/s in, 7 out, about 2m10s to go | waiting for LLMPool smol: starts"
    )


def test_the_live_display_shows_the_same() -> None:
    console = Console(width=120)
    with console.capture() as capture:
        console.print(rendered(VIEW))
    shown = capture.get()
    for part in ("demo", "finished 3/10", "1 running, 3 done", "waiting for LLMPool smol"):
        assert part in shown


def test_a_line_is_not_repeated_while_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    display = LineDisplay()
    display.update(VIEW)
    display.update(VIEW)
    assert capsys.readouterr().out.count("finished 3/10") == 1
