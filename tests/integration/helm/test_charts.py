"""The charts: definitions that outlive their release, and no more rights than are needed."""

import subprocess
from pathlib import Path

import pytest
import yaml

from hack.setup.store import default_root

ROOT = Path(__file__).resolve().parents[3]
HELM = default_root() / "bin" / "helm"
CHARTS = sorted(path.parent for path in (ROOT / "helm").glob("*/Chart.yaml"))


def helm(*words):
    if not HELM.exists():
        pytest.skip(f"no {HELM}: run `make setup-tests`")
    return subprocess.run([HELM, *words], capture_output=True, text=True)


def template(chart, *words):
    done = helm("template", "r", ROOT / "helm" / chart, "--namespace", "home", *words)
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@pytest.mark.parametrize("chart", CHARTS, ids=lambda path: path.name)
def test_helm_finds_no_fault(chart):
    done = helm("lint", "--strict", chart)
    assert done.returncode == 0, done.stdout


def test_definitions_are_ours_and_stay_when_the_release_goes():
    installed = template("rollout-operator-crds")
    for definition in installed:
        kept = definition["metadata"].pop("annotations")
        assert kept == {"helm.sh/resource-policy": "keep"}
    written = [yaml.safe_load(path.read_text()) for path in (ROOT / "crds").glob("*.yaml")]
    assert len(written) == 3
    for definition in written:
        assert definition in installed


@pytest.mark.parametrize("namespaces", ["[]", '["a","b"]'])
def test_rights_name_each_thing(namespaces):
    documents = template("rollout-operator", "--set-json", f"namespaces={namespaces}")
    rules = [rule for document in documents for rule in document.get("rules", [])]
    assert rules
    for rule in rules:
        words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
        assert not words & {"*", "secrets", "configmaps", "pods/exec", "escalate", "impersonate"}


def test_chosen_namespaces_need_no_right_in_the_cluster():
    documents = template("rollout-operator", "--set", "namespaces={a,b}")
    assert not any(document["kind"].startswith("Cluster") for document in documents)
    places = {d["metadata"]["namespace"] for d in documents if d["kind"] == "Role"}
    assert places == {"home", "a", "b"}


def test_unknown_values_are_refused():
    done = helm("template", "r", ROOT / "helm" / "rollout-operator", "--set", "namespace=a")
    assert done.returncode != 0
    assert "namespace" in done.stderr
