"""What the API server tells of a pod becomes a phase, and a reason when it does not run."""

import pytest

from rollout_operator.kubernetes.mirror import mirror, mirror_all, trouble
from rollout_operator.replicas import is_running


def make(**status):
    metadata = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "4"}
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "x"}
    return {
        "kind": "Pod",
        "metadata": {**metadata, "ownerReferences": [reference], "managedFields": [{}]},
        "spec": {"containers": [{"name": "c"}], "nodeName": "a"},
        "status": status,
    }


def waiting(reason, **more):
    return {
        "containerStatuses": [{"state": {"waiting": {"reason": reason, "message": "m"}}, **more}]
    }


OOM = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
READY = [{"type": "Ready", "status": "True"}]


def test_a_running_pod_has_no_trouble():
    pod = mirror("Pod", make(phase="Running", conditions=READY, podIP="10.0.0.1"))
    assert is_running(pod)
    assert pod.status.pod_ip == "10.0.0.1"
    assert pod.spec.node_name == "a"


def test_an_owner_that_does_not_say_so_does_not_control():
    (owner,) = mirror("Pod", make()).metadata.owner_references
    assert not owner.controller


def test_restarts_are_those_of_all_containers():
    pod = mirror("Pod", make(containerStatuses=[{"restartCount": 2}, {"restartCount": 3}]))
    assert pod.status.restart_count == 5


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"phase": "Pending", **waiting("ContainerCreating")}, ""),
        ({"phase": "Pending", **waiting("ImagePullBackOff")}, "ImagePullBackOff"),
        ({"phase": "Running", **waiting("CrashLoopBackOff", lastState=OOM)}, "CrashLoopBackOff"),
        ({"phase": "Failed", "containerStatuses": [{"state": OOM}]}, "OOMKilled"),
        ({"phase": "Failed", "reason": "Evicted", "message": "disk"}, "Evicted"),
        (
            {
                "phase": "Pending",
                "conditions": [
                    {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
                ],
            },
            "Unschedulable",
        ),
        ({"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}, "NotReady"),
    ],
)
def test_what_keeps_a_pod_from_running_is_told(status, reason):
    assert trouble(status)[0] == reason
    assert not is_running(mirror("Pod", make(**status)))


def test_a_restarting_pod_tells_how_it_ended():
    message = trouble(waiting("CrashLoopBackOff", lastState=OOM))[1]
    assert "OOMKilled: exit code 137" in message


def test_an_object_of_another_version_is_named():
    found = {"metadata": {"name": "j", "namespace": "n"}, "spec": {"new": 1}}
    with pytest.raises(ValueError, match="RolloutJob n/j does not fit"):
        mirror("RolloutJob", found)


def test_an_object_that_does_not_fit_does_not_hide_the_others(caplog):
    good = make(phase="Running")
    bad = {"metadata": {"name": "UPPER"}, "spec": {}}
    assert len(mirror_all("Pod", [bad, good])) == 1
    assert "not looked after" in caplog.text
