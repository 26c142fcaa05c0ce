"""What a pod's program finds in its environment."""

import sys
from pathlib import Path

import pytest

from rollout_crds.pod import Container, PodEnvVar
from rollout_operator.node.environment import expand, invocation, node_environment
from rollout_operator.node.paths import NodePaths

PATHS = NodePaths(Path("/state"))


def test_programs_learn_where_everything_is():
    env = node_environment({"HOME": "/home/u", "PATH": "/bin"}, PATHS, "unix:///state/run/g.sock")
    cache = "/home/u/.cache/rollout-operator"
    assert env["ROLLOUT_GATEWAY_URL"] == "unix:///state/run/g.sock"
    assert env["ROLLOUT_WORK_DIR"] == "/state/work"
    assert env["ROLLOUT_BLOB_URL"] == "file:///state/blobs"
    assert env["ROLLOUT_MODELS"] == f"{cache}/models"
    assert env["ROLLOUT_IMAGES"] == f"{cache}/images"
    assert env["PATH"] == f"{cache}/bin:{Path(sys.executable).parent}:/bin"


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("$(A)/x", "1/x"),
        ("$(UNKNOWN)", "$(UNKNOWN)"),
        ("$$(A)", "$(A)"),
        ("$A ${A}", "$A ${A}"),
        ("$(A)$(B)", "12"),
    ],
)
def test_references_are_replaced_as_kubernetes_does(text, expanded):
    assert expand(text, {"A": "1", "B": "2"}) == expanded


def test_variables_refer_to_those_before_them_and_override_the_node_s():
    container = Container(
        name="x",
        command=["run", "$(ROLLOUT_POD_NAME)"],
        args=["$(DIR)"],
        env=[PodEnvVar(name="ROOT", value="/r"), PodEnvVar(name="DIR", value="$(ROOT)/d")],
    )
    call = invocation(container, "pod-0", {"ROOT": "/node"})
    assert call.argv == ("run", "pod-0", "/r/d")
    assert call.env["ROOT"] == "/r"
