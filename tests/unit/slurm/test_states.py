"""Every state of a job is told in the pod, in Slurm's own words."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rollout_slurm.states import pod_status
from tests.unit.slurm.factories import make_job


@pytest.mark.parametrize(
    ("state", "reason", "phase", "pod_reason", "words"),
    [
        ("PENDING", "None", "Pending", "Queued", "Slurm job 7 waits (PENDING)"),
        ("PENDING", "Priority", "Pending", "Priority", "(PENDING, reason Priority)"),
        ("PENDING", "JobHeldUser", "Pending", "JobHeldUser", "`scontrol release 7`"),
        ("RUNNING", "None", "Running", "", "Slurm job 7 runs"),
        ("SUSPENDED", "None", "Running", "Suspended", "is suspended"),
        ("COMPLETED", "None", "Succeeded", "Completed", "has ended"),
        ("CANCELLED", "None", "Failed", "Cancelled", "was cancelled (CANCELLED)"),
        ("TIMEOUT", "TimeLimit", "Failed", "Timeout", "reason TimeLimit"),
        ("PREEMPTED", "None", "Failed", "Preempted", "was preempted"),
        ("NODE_FAIL", "NodeDown", "Failed", "NodeFailed", "reason NodeDown"),
        ("OUT_OF_MEMORY", "OutOfMemory", "Failed", "OutOfMemory", "ran out of memory"),
        ("SOMETHING_NEW", "None", "Unknown", "UnknownState", "SOMETHING_NEW"),
    ],
)
def test_a_state_becomes_a_status(
    state: str, reason: str, phase: str, pod_reason: str, words: str
) -> None:
    status = pod_status(make_job(7, "a", state, reason))
    assert (status.phase, status.reason) == (phase, pod_reason)
    assert words in status.message


def test_exit_code_and_signal_are_told() -> None:
    failed = make_job(7, "a", "FAILED", "NonZeroExitCode")
    assert "exit code 3" in pod_status(replace(failed, exit_status=768)).message
    assert "signal 9" in pod_status(replace(failed, exit_status=9)).message
