"""The set-up command: what is there stays, what is missing gives one line with a remedy."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hack.setup import cli
from hack.setup.component import Component, Session
from hack.setup.errors import SetupError
from hack.setup.shell import as_root
from hack.setup.store import Store, default_root
from tests.support.engine import cached

REPOSITORY = Path(__file__).resolve().parents[3]


def set_up(*names: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hack.setup", *names],
        cwd=REPOSITORY,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=60,
    )


def failures(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert "Traceback" not in done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if ": FAILED: " in line]


def test_a_second_run_installs_nothing_and_takes_seconds() -> None:
    for kind, name in (("bin", "vllm-python"), ("models", "tiny-qwen3"), ("images", "python.sif")):
        cached(kind, name)
    names = [name for name in cli.by_default() if name not in {"runtime", "project"}]
    started = time.monotonic()
    done = set_up(*names, ROLLOUT_CACHE=str(default_root()))
    assert done.returncode == 0, done.stdout
    assert "installing" not in done.stdout
    assert time.monotonic() - started < 15


def test_an_old_python_is_refused_in_one_line() -> None:
    old = "import sys, runpy; sys.version_info = (3, 9, 2); runpy.run_module('hack.setup')"
    done = subprocess.run(
        [sys.executable, "-c", old], cwd=REPOSITORY, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert re.fullmatch(r"setup: Python 3\.11 or newer is needed, this is 3\.9;.*\n", done.stderr)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = set_up("uv", ROLLOUT_CACHE=str(tmp_path / "file" / "cache"))
    assert done.returncode == 1
    (line,) = failures(done)
    assert line.endswith("Not a directory; choose a folder you may write with ROLLOUT_CACHE")


def test_without_a_package_manager_the_missing_packages_are_named(tmp_path: Path) -> None:
    bare = tmp_path / "bin"
    bare.mkdir()
    for command in ("git", "sh", "unshare"):
        found = shutil.which(command)
        assert found is not None
        (bare / command).symlink_to(found)
    done = set_up("system", PATH=str(bare), ROLLOUT_CACHE=str(tmp_path / "cache"))
    assert done.returncode == 1
    (line,) = failures(done)
    assert "no apt-get here: install what" in line
    assert "bubblewrap" in line
    assert " git " not in line


def test_without_the_network_a_package_index_is_blamed_and_nothing_stays(tmp_path: Path) -> None:
    done = set_up(
        "vllm",
        ROLLOUT_CACHE=str(tmp_path),
        UV_OFFLINE="1",
        UV_CACHE_DIR=str(tmp_path / "empty"),
        UV_NO_CONFIG="1",
    )
    assert done.returncode == 1
    (line,) = failures(done)
    assert "check the network" in line
    assert list((tmp_path / "store").iterdir()) == []


def test_a_plain_user_without_sudo_is_told_what_needs_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match=r"root is needed to install git: run this as root, or"):
        as_root("install git")


def test_an_unknown_component_is_a_usage_error() -> None:
    done = set_up("nonesuch")
    assert done.returncode == 2
    assert "no component nonesuch; there are system," in done.stderr


def test_a_failed_component_takes_along_only_those_that_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ran: list[str] = []

    def broken(_: Session) -> None:
        message = "no wind; wait"
        raise SetupError(message)

    components = {
        "a": Component("a", "", broken),
        "b": Component("b", "", lambda _: ran.append("b"), needs=("a",)),
        "c": Component("c", "", lambda _: ran.append("c")),
    }
    monkeypatch.setattr(cli, "COMPONENTS", components)
    assert not cli.set_up(["b", "c"], Store(tmp_path), cli.Progress())
    assert ran == ["c"]
    out = capsys.readouterr().out
    assert "a: FAILED: no wind; wait" in out
    assert "b: FAILED: left out, since it needs a" in out
