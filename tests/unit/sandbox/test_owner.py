"""Directories belong to whoever holds their lock; those of the dead are removed."""

import subprocess
import sys

import pytest

from rollout_sandbox.errors import SandboxUnavailable
from rollout_sandbox.owner import claim, record_processes, recorded_processes, sweep

HOLD = """
import sys, time
from pathlib import Path
from rollout_sandbox.owner import claim
owner = claim(Path(sys.argv[1]), "other")
(owner.directory / "s0" / "work").mkdir(parents=True)
(owner.directory / "s0" / "work").chmod(0)
print("held", flush=True)
time.sleep(60)
"""


def test_a_dead_owner_is_swept_and_a_live_one_is_not(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert sweep(tmp_path) == []
        with pytest.raises(SandboxUnavailable, match="in use"):
            claim(tmp_path, "other")
        holder.kill()
        holder.wait()
    assert sweep(tmp_path) == ["other"]
    assert list(tmp_path.iterdir()) == []


def test_a_released_name_leaves_nothing_and_can_be_claimed_again(tmp_path):
    for _ in range(2):
        owner = claim(tmp_path, "me")
        (owner.directory / "s0").mkdir()
        owner.release()
        assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 64])
def test_names_that_are_no_file_names_are_refused(name, tmp_path):
    with pytest.raises(SandboxUnavailable, match="letters, digits"):
        claim(tmp_path, name)


def test_a_process_is_known_by_its_start_time(tmp_path):
    with subprocess.Popen(["sleep", "60"]) as process:
        record_processes(tmp_path, [process.pid])
        assert recorded_processes(tmp_path) == [process.pid]
        process.kill()
    assert recorded_processes(tmp_path) == []
    (tmp_path / "pids").write_text("1 12345678901\n")
    assert recorded_processes(tmp_path) == []
