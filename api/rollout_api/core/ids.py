"""Identifiers that follow from what they identify, so that loading a job again changes nothing."""

import hashlib

from rollout_crds.result import Stage


def group_id(job_uid: str, task_id: str) -> str:
    """The id of the group of a task."""
    digest = hashlib.sha256(f"{job_uid}\0{task_id}".encode()).hexdigest()
    return f"g-{digest[:20]}"


def rollout_id(group: str, sample_index: int) -> str:
    """The id of a sample of a group."""
    return f"r-{group.removeprefix('g-')}-{sample_index}"


def work_id(stage: Stage, subject: str) -> str:
    """The id of a unit of work."""
    return f"{stage.value}:{subject}"
