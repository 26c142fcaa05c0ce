"""Pods and jobs for tests of the bridge."""

from __future__ import annotations

from datetime import UTC, datetime

from rollout_crds.meta import ObjectMeta
from rollout_crds.placement import SLURM_ANNOTATION, SLURM_SCHEDULER, SlurmPlacement
from rollout_crds.pod import Container, Pod, PodEnvVar, PodSpec, PodStatus
from rollout_slurm.job import JobKey, JobSeen

BRIDGE = "here"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def make_pod(
    uid: str, status: PodStatus | None = None, placement: SlurmPlacement | None = None
) -> Pod:
    container = Container(
        name="stage",
        command=["rollout-stage", "run"],
        env=[PodEnvVar(name="ROLLOUT_JOB_UID", value="it's a `uid`")],
    )
    placed = (placement or SlurmPlacement()).model_dump_json(by_alias=True)
    return Pod(
        metadata=ObjectMeta(name=f"pod-{uid}", uid=uid, annotations={SLURM_ANNOTATION: placed}),
        spec=PodSpec(containers=[container], scheduler_name=SLURM_SCHEDULER),
        status=status or PodStatus(),
    )


def make_job(job_id: int, uid: str, state: str = "RUNNING", reason: str = "None") -> JobSeen:
    key = JobKey(BRIDGE, uid)
    return JobSeen(job_id, key, state, reason, submitted=NOW, started=NOW)
