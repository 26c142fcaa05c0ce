"""Whether and when an ended program is started again."""

import pytest

from rollout_operator.node.restart import (
    FIRST_DELAY_SECONDS,
    LAST_DELAY_SECONDS,
    STABLE_SECONDS,
    after_exit,
    describe_exit,
)


@pytest.mark.parametrize(
    ("policy", "code", "phase"),
    [
        ("Never", 0, "Succeeded"),
        ("Never", 3, "Failed"),
        ("Never", -9, "Failed"),
        ("OnFailure", 0, "Succeeded"),
    ],
)
def test_some_ends_are_final(policy, code, phase):
    verdict = after_exit(policy, code, 1.0, 0)
    assert (verdict.phase, verdict.restart_in) == (phase, None)


@pytest.mark.parametrize(
    ("policy", "code"), [("OnFailure", 1), ("OnFailure", -9), ("Always", 0), ("Always", 1)]
)
def test_other_ends_lead_to_a_restart(policy, code):
    verdict = after_exit(policy, code, 1.0, 0)
    assert (verdict.phase, verdict.restart_in) == ("Running", FIRST_DELAY_SECONDS)


def test_the_delay_doubles_up_to_a_limit():
    failures, delays = 0, []
    for _ in range(12):
        verdict = after_exit("Always", 1, 0.1, failures)
        failures = verdict.failures
        delays.append(verdict.restart_in)
    assert delays[:3] == [FIRST_DELAY_SECONDS, 2 * FIRST_DELAY_SECONDS, 4 * FIRST_DELAY_SECONDS]
    assert delays == sorted(delays)
    assert delays[-1] == LAST_DELAY_SECONDS


def test_a_program_that_ran_long_is_forgiven_its_earlier_failures():
    assert after_exit("Always", 1, STABLE_SECONDS, 9).restart_in == FIRST_DELAY_SECONDS


@pytest.mark.parametrize(
    ("code", "words"),
    [(0, "exited with code 0"), (-9, "killed by SIGKILL"), (-99, "killed by signal 99")],
)
def test_an_exit_is_described_in_words(code, words):
    assert describe_exit(code) == words
