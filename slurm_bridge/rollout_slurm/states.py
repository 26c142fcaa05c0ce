"""What a Slurm job's state means for its pod.

A pod ends with its job and is replaced by its owner, so every end of a job is one of the pod.
"""

from dataclasses import dataclass
from typing import Literal

from rollout_crds.pod import PodStatus
from rollout_slurm.job import JobSeen

Phase = Literal["Pending", "Running", "Succeeded", "Failed", "Unknown"]

_HELD = {"JobHeldUser", "JobHeldAdmin"}


@dataclass(frozen=True)
class Meaning:
    """Of one state of a job."""

    phase: Phase
    reason: str
    words: str
    is_disturbance: bool = False
    """The job ended through no fault of its program: the site's doing, so no warning."""


STATES: dict[str, Meaning] = {
    "PENDING": Meaning("Pending", "", "waits"),
    "CONFIGURING": Meaning("Pending", "Configuring", "waits for its node to get ready"),
    "REQUEUED": Meaning("Pending", "Requeued", "was put back into the queue"),
    "REQUEUE_FED": Meaning("Pending", "Requeued", "was put back into the queue"),
    "REQUEUE_HOLD": Meaning("Pending", "Held", "was put back into the queue and is held"),
    "SPECIAL_EXIT": Meaning("Pending", "Held", "was put back into the queue and is held"),
    "RESV_DEL_HOLD": Meaning("Pending", "Held", "is held, since its reservation was deleted"),
    "RUNNING": Meaning("Running", "", "runs"),
    "RESIZING": Meaning("Running", "", "runs"),
    "SIGNALING": Meaning("Running", "", "runs"),
    "SUSPENDED": Meaning("Running", "Suspended", "is suspended"),
    "STOPPED": Meaning("Running", "Suspended", "is stopped"),
    "COMPLETING": Meaning("Running", "Completing", "ends"),
    "STAGE_OUT": Meaning("Running", "Completing", "ends"),
    "COMPLETED": Meaning("Succeeded", "Completed", "has ended"),
    "FAILED": Meaning("Failed", "Error", "failed"),
    "CANCELLED": Meaning("Failed", "Cancelled", "was cancelled", is_disturbance=True),
    "TIMEOUT": Meaning("Failed", "Timeout", "reached its time limit", is_disturbance=True),
    "DEADLINE": Meaning("Failed", "Deadline", "reached its deadline", is_disturbance=True),
    "PREEMPTED": Meaning("Failed", "Preempted", "was preempted", is_disturbance=True),
    "REVOKED": Meaning("Failed", "Revoked", "was revoked", is_disturbance=True),
    "NODE_FAIL": Meaning("Failed", "NodeFailed", "lost its node", is_disturbance=True),
    "BOOT_FAIL": Meaning("Failed", "NodeFailed", "failed to boot its node", is_disturbance=True),
    "LAUNCH_FAILED": Meaning("Failed", "LaunchFailed", "could not be launched"),
    "RECONFIG_FAIL": Meaning("Failed", "NodeFailed", "failed to set its node up"),
    "OUT_OF_MEMORY": Meaning("Failed", "OutOfMemory", "ran out of memory"),
}


def meaning_of(state: str) -> Meaning:
    """The meaning of a state; one that this version does not know is `Unknown`."""
    return STATES.get(state, Meaning("Unknown", "UnknownState", f"is in state {state}"))


def is_active(seen: JobSeen) -> bool:
    """Whether the job waits or runs, so that there is something to cancel."""
    return meaning_of(seen.state).phase in {"Pending", "Running", "Unknown"}


def pod_status(seen: JobSeen) -> PodStatus:
    """The status of the pod of a job; it starts, for its owner, when its job was submitted."""
    meaning = meaning_of(seen.state)
    return PodStatus(
        phase=meaning.phase,
        reason=_reason(meaning, seen),
        message=_message(meaning, seen),
        start_time=seen.started if meaning.phase != "Pending" and seen.started else seen.submitted,
    )


def _reason(meaning: Meaning, seen: JobSeen) -> str:
    if seen.state != "PENDING":
        return meaning.reason
    return seen.reason if seen.reason not in {"", "None"} else "Queued"


def _message(meaning: Meaning, seen: JobSeen) -> str:
    text = f"Slurm job {seen.job_id} {meaning.words}"
    if meaning.phase == "Running" and not meaning.reason:
        return text
    text += f" ({_slurms_words(seen)})"
    if seen.reason in _HELD:
        text += f": `scontrol release {seen.job_id}` lets it run"
    return text


def _slurms_words(seen: JobSeen) -> str:
    words = [seen.state]
    if seen.reason not in {"", "None"}:
        words.append(f"reason {seen.reason}")
    if seen.exit_status >> 8:
        words.append(f"exit code {seen.exit_status >> 8}")
    if seen.exit_status & 127:
        words.append(f"signal {seen.exit_status & 127}")
    return ", ".join(words)
