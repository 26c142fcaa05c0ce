"""The API server takes the project's kinds as they are generated, explains and lists them."""

import json

import pytest

from hack.kube import ControlPlane, KubectlFailed
from rollout_crds.crd import COLUMNS, definitions
from tests.support.manifests import JOB, POOL

pytestmark = pytest.mark.kubernetes
CRDS = [f"{plural}.rollout-operator.dev" for plural in definitions()]


@pytest.mark.parametrize("name", CRDS)
def test_the_schema_is_structural_and_its_rules_are_cheap_enough(
    plane: ControlPlane, name: str
) -> None:
    crd = json.loads(plane.kubectl("get", "crd", name, "--output=json"))
    conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("name", CRDS)
def test_the_server_keeps_every_part_of_the_schema(plane: ControlPlane, name: str) -> None:
    (made,) = (d for d in definitions().values() if d["metadata"]["name"] == name)
    crd = json.loads(plane.kubectl("get", "crd", name, "--output=json"))
    assert crd["spec"]["versions"][0]["schema"] == made["spec"]["versions"][0]["schema"]


@pytest.mark.parametrize("field", ["rj.spec.groups.minimumUsableSamples", "llmp.spec", "rpool"])
def test_every_field_is_explained(plane: ControlPlane, field: str) -> None:
    told = plane.kubectl("explain", field)
    assert "<empty>" not in told
    assert {
        "rj.spec.groups.minimumUsableSamples": "Scored rollouts below which a group counts",
        "llmp.spec": "A served model; exactly one of",
        "rpool": "Warm stage pods that jobs use",
    }[field] in " ".join(told.split())


def test_the_columns_of_a_job_come_from_its_status(plane: ControlPlane) -> None:
    plane.kubectl("apply", "-f", "-", stdin=JOB)
    condition = {
        **{"type": "Succeeded", "status": "Unknown", "reason": "Running", "message": "going on"},
        "lastTransitionTime": "2026-01-31T12:00:00Z",
    }
    outcomes = {"scored": 3, "infraError": 1}
    progress = {"finished": 4, "rollouts": 8, "outcomes": outcomes}
    status = {"status": {"conditions": [condition], "progress": progress}}
    plane.kubectl(
        *("patch", "rj", "demo", "--subresource=status", "--type=merge"),
        f"--patch={json.dumps(status)}",
    )
    head, row = plane.kubectl("get", "rj", "demo").splitlines()
    names = [column.name.upper() for column in COLUMNS["RolloutJob"] if not column.wide]
    assert head.split() == ["NAME", *names]
    assert row.split()[:-1] == ["demo", "Unknown", "Running", "4", "8", "3"]
    wide = plane.kubectl("get", "rj", "demo", "--output=wide")
    assert "tiny" in wide
    assert "going on" in wide
    plane.kubectl("delete", "rj", "demo")


def test_kinds_are_found_by_short_name_category_and_selectable_field(
    plane: ControlPlane,
) -> None:
    plane.kubectl("apply", "-f", "-", stdin=f"{JOB}---\n{POOL}")
    found = plane.kubectl("get", "rollout-operator", "--output=name").split()
    assert found == ["llmpool.rollout-operator.dev/tiny", "rolloutjob.rollout-operator.dev/demo"]
    for field, count in (("spec.handler=math", 1), ("spec.handler=code", 0)):
        jobs = plane.kubectl("get", "rj", f"--field-selector={field}", "--output=name")
        assert len(jobs.split()) == count
    plane.kubectl("delete", "rj/demo", "llmp/tiny")


def test_spec_and_status_are_written_apart(plane: ControlPlane) -> None:
    plane.kubectl("apply", "-f", "-", stdin=JOB)
    by_status = '{"spec":{"priority":5},"status":{"observedGeneration":1}}'
    plane.kubectl(
        *("patch", "rj", "demo", "--subresource=status", "--type=merge", f"--patch={by_status}")
    )
    plane.kubectl("patch", "rj", "demo", "--type=merge", '--patch={"status":{"progress":{}}}')
    job = json.loads(plane.kubectl("get", "rj", "demo", "--output=json"))
    assert (job["spec"]["priority"], job["status"]) == (0, {"observedGeneration": 1})
    assert job["metadata"]["generation"] == 1
    plane.kubectl("delete", "rj", "demo")


def test_a_status_that_breaks_the_schema_is_refused(plane: ControlPlane) -> None:
    plane.kubectl("apply", "-f", "-", stdin=JOB)
    patch = '{"status":{"conditions":[{"type":"Succeeded","status":"true"}]}}'
    with pytest.raises(KubectlFailed, match=r"conditions\[0\].status: Unsupported value"):
        plane.kubectl(
            *("patch", "rj", "demo", "--subresource=status", "--type=merge", f"--patch={patch}")
        )
    plane.kubectl("delete", "rj", "demo")
