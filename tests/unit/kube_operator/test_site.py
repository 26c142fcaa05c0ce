"""Pods for a Kubernetes cluster: least rights, the administrator's additions, no node."""

from pathlib import Path

import pytest

from rollout_operator.kubernetes.templates import load_templates
from rollout_operator.pods import engine_pods, stage_pods
from rollout_operator.sites import KubernetesSite, PodTemplate
from tests.unit.operator.factories import make_job, make_llm_pool

TEMPLATES = {
    "stage": PodTemplate(
        "stage@sha256:1",
        pod={
            "nodeSelector": {"pool": "cpu"},
            "priorityClassName": "low",
            "volumes": [{"name": "v"}],
        },
        container={"resources": {"limits": {"cpu": "4"}}, "volumeMounts": [{"name": "v"}]},
        env={"ROLLOUT_BLOB_URL": "s3://b"},
    ),
    "engine": PodTemplate("engine:1", container={"resources": {"limits": {"nvidia.com/gpu": 1}}}),
}
SITE = KubernetesSite("http://gateway:80", TEMPLATES)


def spec_of(pod):
    return pod.spec.model_dump(mode="json", by_alias=True, exclude_none=True)


def test_a_stage_pod_is_left_to_the_scheduler_with_least_rights():
    job = make_job()
    spec = spec_of(stage_pods(job, job.spec.stages, SITE)[1])
    (container,) = spec["containers"]
    assert "nodeName" not in spec
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"]["allowPrivilegeEscalation"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert container["command"] == ["rollout-stage", "run"]
    env = {variable["name"]: variable for variable in container["env"]}
    assert env["ROLLOUT_GATEWAY_URL"]["value"] == "http://gateway:80"
    assert env["ROLLOUT_POD_NAME"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
    assert {"ROLLOUT_JOB_UID", "ROLLOUT_CONCURRENCY", "ROLLOUT_BLOB_URL"} < set(env)


def test_what_the_administrator_adds_is_in_the_pod():
    job = make_job()
    spec = spec_of(stage_pods(job, job.spec.stages, SITE)[0])
    (container,) = spec["containers"]
    assert container["image"] == "stage@sha256:1"
    assert container["resources"] == {"limits": {"cpu": "4"}}
    assert (spec["nodeSelector"], spec["priorityClassName"]) == ({"pool": "cpu"}, "low")
    assert [volume["name"] for volume in spec["volumes"]] == ["work", "v"]
    assert [mount["name"] for mount in container["volumeMounts"]] == ["work", "v"]


def test_an_engine_listens_at_its_pod_s_address():
    pool = make_llm_pool(launch={"modelPath": "/models/tiny"})
    (pod,) = engine_pods(pool, pool.spec.launch, SITE)
    (container,) = spec_of(pod)["containers"]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": 1}}
    assert container["args"][:4] == ["--host", "0.0.0.0", "--port", "8000"]
    assert SITE.engine_url(pod.metadata.name, pod) is None
    for address, url in (
        ("10.0.0.9", "http://10.0.0.9:8000"),
        ("fd00::1", "http://[fd00::1]:8000"),
    ):
        status = pod.status.model_copy(update={"pod_ip": address})
        addressed = pod.model_copy(update={"status": status})
        assert SITE.engine_url(pod.metadata.name, addressed) == url


def test_unknown_fields_of_a_template_are_refused(tmp_path: Path):
    path = tmp_path / "templates.yaml"
    path.write_text("stage: {image: a, pods: {}}")
    with pytest.raises(ValueError, match="pods"):
        load_templates(path)
