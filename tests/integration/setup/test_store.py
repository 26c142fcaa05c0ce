"""Entries of the cache are complete or absent, however many set-ups run and whoever is killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from hack.setup.component import Session
from hack.setup.errors import SetupError
from hack.setup.shell import Shell
from hack.setup.store import Store, default_root, digest

REPOSITORY = Path(__file__).resolve().parents[3]
# A set-up of one entry whose build takes a while and notes each build beside the cache.
SLOW_BUILD = """
import sys, time
from pathlib import Path
from hack.setup.component import Session
from hack.setup.shell import Shell
from hack.setup.store import Store
root = Path(sys.argv[1])
def build(folder):
    (folder / "half").touch()
    with (root / "builds").open("a") as builds:
        builds.write("one\\n")
    print("building", flush=True)
    time.sleep(float(sys.argv[2]))
    (folder / "whole").touch()
store = Store(root)
tell = lambda text: print(text, flush=True)
Session(store, Shell(root / "log"), tell).provide("thing-1", "thing", build)
"""


def start_build(root: Path, seconds: float) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", SLOW_BUILD, str(root), str(seconds)]
    return subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    return out


def session(root: Path, said: list[str]) -> Session:
    return Session(Store(root), Shell(root / "log"), said.append)


def test_two_set_ups_at_once_build_an_entry_once(tmp_path: Path) -> None:
    outs = [finish(process) for process in [start_build(tmp_path, 1), start_build(tmp_path, 1)]]
    assert (tmp_path / "builds").read_text() == "one\n"
    assert sum("waiting for another set-up" in out and "already there" in out for out in outs) == 1


def test_a_killed_set_up_leaves_no_entry_and_the_next_one_sweeps_its_folder(tmp_path: Path) -> None:
    killed = start_build(tmp_path, 60)
    assert killed.stdout is not None
    while killed.stdout.readline() != "building\n":
        pass
    killed.kill()
    killed.communicate()
    store = tmp_path / "store"
    assert [path.name for path in store.iterdir()] == [f".thing-1.{killed.pid}"]
    finish(start_build(tmp_path, 0))
    assert [path.name for path in store.iterdir()] == ["thing-1"]
    assert (store / "thing-1" / "whole").exists()


def test_a_failed_build_leaves_nothing_and_tells_the_programs_last_line(tmp_path: Path) -> None:
    one = session(tmp_path, [])

    def build(folder: Path) -> None:
        (folder / "half").touch()
        one.shell.run("sh", "-c", "echo first; echo no space left; exit 3", remedy="free some")

    with pytest.raises(SetupError, match=r"status 3: no space left; free some"):
        one.provide("thing-1", "thing", build)
    assert list((tmp_path / "store").iterdir()) == []


def test_a_second_set_up_says_where_the_entry_is(tmp_path: Path) -> None:
    said: list[str] = []
    one = session(tmp_path, said)
    made = one.provide("thing-1", "thing", lambda folder: (folder / "whole").touch())
    assert one.provide("thing-1", "thing", lambda _: pytest.fail("built twice")) == made
    assert said[-1] == f"thing: already there ({made})"


def test_a_stable_name_follows_the_newest_entry_and_moves_with_the_cache(tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    for version in ("1", "2"):
        with store.staged(f"thing-{version}") as folder:
            (folder / "version").write_text(version)
        store.link("models", "thing", store.entry(f"thing-{version}"))
    store.root.rename(tmp_path / "moved")
    assert (tmp_path / "moved/models/thing/version").read_text() == "2"


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ROLLOUT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert default_root() == Path("/xdg/rollout-operator")
    monkeypatch.setenv("ROLLOUT_CACHE", "/chosen")
    assert default_root() == Path("/chosen")


def test_a_digest_tells_where_one_part_ends_and_the_next_begins() -> None:
    assert digest("ab", "c") != digest("a", "bc")
