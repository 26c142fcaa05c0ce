"""Stage pods of a job that is placed on Slurm are left to the bridge, with all it needs to know."""

from __future__ import annotations

from rollout_crds.placement import SLURM_ANNOTATION, SlurmPlacement
from rollout_operator.pods import TEMPLATE_ANNOTATION, stage_pods
from tests.unit.operator.factories import SITE, make_job

SLURM = {"partition": "gpu", "timeLimitMinutes": 30}


def test_pods_of_a_placed_job_name_the_bridge_and_carry_the_placement() -> None:
    job = make_job(placement={"slurm": SLURM})
    for pod in stage_pods(job, job.spec.stages, SITE):
        assert pod.spec.node_name is None
        assert pod.spec.scheduler_name == "rollout-slurm"
        placement = SlurmPlacement.model_validate_json(pod.metadata.annotations[SLURM_ANNOTATION])
        assert placement == SlurmPlacement(partition="gpu", time_limit_minutes=30)


def test_another_placement_is_another_template() -> None:
    def template(placement: object) -> str:
        job = make_job(placement=placement)
        return stage_pods(job, job.spec.stages, SITE)[0].metadata.annotations[TEMPLATE_ANNOTATION]

    other = {"slurm": {**SLURM, "partition": "cpu"}}
    assert len({template(None), template({"slurm": SLURM}), template(other)}) == 3
