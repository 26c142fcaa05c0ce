"""Leases as the gateway gives them."""

import asyncio
from typing import Any

from rollout_crds.result import Stage
from rollout_crds.rolloutjob import RolloutSpec
from rollout_crds.task import Task
from rollout_crds.wire import Lease
from rollout_stages.work import Work


def job_spec(**changes: Any) -> RolloutSpec:
    """A small job; `changes` replace top-level fields."""
    return RolloutSpec.model_validate(
        {
            "handler": "code",
            "llm": {"poolRef": {"name": "pool"}},
            "sandbox": {"image": "/image"},
            **changes,
        }
    )


def lease(stage: Stage, task: Task, spec: RolloutSpec, **fields: Any) -> Lease:
    """A lease of one unit of work."""
    return Lease(
        work_id=fields.pop("work_id", f"{stage}:g1-0"),
        attempt=fields.pop("attempt", 1),
        stage=stage,
        job_uid="uid",
        job_name="job",
        namespace="default",
        spec=spec,
        task=task,
        group_id="g1",
        lease_seconds=fields.pop("lease_seconds", 15.0),
        active_deadline_seconds=fields.pop("active_deadline_seconds", 100),
        **fields,
    )


def work(leased: Lease) -> Work:
    """Work on a lease, started now."""
    now = asyncio.get_running_loop().time()
    return Work(leased, now + leased.active_deadline_seconds)
