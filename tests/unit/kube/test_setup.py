"""What set-up needs to build Kubernetes is checked first and told in one line."""

import os
from pathlib import Path

import pytest

from hack.setup import cli, kubernetes
from hack.setup.errors import SetupError
from hack.setup.kubernetes import MODULES, check_go, required


def put_go(folder: Path, version: str) -> None:
    go = folder / "go"
    go.write_text(f"#!/bin/sh\necho {version}\n")
    go.chmod(0o755)


def test_without_go_the_wanted_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"no `go` on the PATH: install Go 1\.\d+ or newer"):
        check_go()


def test_an_old_go_is_refused_and_a_new_one_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    put_go(tmp_path, "go1.9.7")
    with pytest.raises(SetupError, match=r"`go` is go1\.9\.7: Go 1\.\d+ or newer is needed"):
        check_go()
    put_go(tmp_path, "go1.99.1")
    check_go()


def test_versions_are_those_of_the_modules() -> None:
    assert kubernetes.VERSION == "1.34.4"
    assert required(MODULES / "etcd" / "go.mod", "go.etcd.io/etcd/server/v3") == "3.6.13"
    assert "gitMinor=34 " in kubernetes._linker_flags("kubernetes")


def test_kubernetes_is_set_up_only_when_it_is_named() -> None:
    assert {"kubernetes", "kubernetes-node", "helm"} <= set(cli.COMPONENTS) - set(cli.by_default())
