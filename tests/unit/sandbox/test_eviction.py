"""A cache shrinks to its size, and never by what is in use."""

import os
import signal
import subprocess
import sys

from rollout_sandbox.eviction import Lease, evict, lock_of

HOLD = """
import sys, time
from pathlib import Path
from rollout_sandbox.eviction import Lease
Lease().hold(Path(sys.argv[1])); lease = Lease(); lease.hold(Path(sys.argv[1]))
print("held", flush=True); time.sleep(60)
"""


def fill(cache, *names):
    for age, name in enumerate(reversed(names)):
        (cache / name).mkdir()
        (cache / name / "content").write_bytes(b"x" * 100_000)
        lease = Lease()
        lease.hold(cache / name)
        lease.release()
        os.utime(lock_of(cache / name), (1000 - age, 1000 - age))


def left(cache):
    return sorted(path.name for path in cache.iterdir() if not path.name.startswith("."))


def test_what_was_used_longest_ago_goes_first(tmp_path):
    fill(tmp_path, "old", "middle", "new")
    assert evict(tmp_path, 250_000) == ["old"]
    assert left(tmp_path) == ["middle", "new"]
    assert evict(tmp_path, 250_000) == []


def test_what_another_process_holds_stays_until_it_is_killed(tmp_path):
    fill(tmp_path, "held", "free")
    command = [sys.executable, "-c", HOLD, str(tmp_path / "held")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as holder:
        assert holder.stdout.readline() == b"held\n"
        assert evict(tmp_path, 0) == ["free"]
        holder.send_signal(signal.SIGKILL)
    assert evict(tmp_path, 0) == ["held"]
    assert left(tmp_path) == []


def test_a_use_makes_an_entry_young(tmp_path):
    fill(tmp_path, "old", "new")
    lease = Lease()
    lease.hold(tmp_path / "old")
    lease.release()
    assert evict(tmp_path, 150_000) == ["new"]
