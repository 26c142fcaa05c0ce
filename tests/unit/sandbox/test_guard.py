"""What counts as use of the whole sandbox, and when it is too much."""

import os

import pytest

from rollout_sandbox.disk import tree_bytes
from rollout_sandbox.server.guard import Usage, excess, parse_status, total
from rollout_sandbox.server.types import ServerConfig

CONFIG = ServerConfig(
    *(3, 4, "/", "/", {}), action_seconds=1, output_bytes=1, transfer_bytes=1,
    memory_bytes=10 << 20, processes=5,
)  # fmt: skip


def test_memory_is_private_pages_and_the_larger_of_files_and_mappings():
    usages = [Usage(3 << 20, 4 << 20, 1), Usage(1 << 20, 2 << 20, 2)]
    assert total(usages, tmpfs_bytes=1 << 20) == (8 << 20, 3)
    assert total(usages, tmpfs_bytes=6 << 20) == (10 << 20, 3)


def test_limits_are_exceeded_only_above_them():
    assert excess(10 << 20, 5, CONFIG) is None
    assert excess((10 << 20) + 1, 5, CONFIG) == "10 MiB of memory, over the limit of 10 MiB"
    assert excess(0, 6, CONFIG) == "6 processes and threads, over the limit of 5"
    assert excess(1 << 60, 10**6, CONFIG._replace(memory_bytes=None, processes=None)) is None


@pytest.mark.parametrize(("parent", "tasks"), [(1, 0), (77, 1)])
def test_zombies_count_until_process_1_is_to_reap_them(parent, tasks):
    assert parse_status(f"State:\tZ (zombie)\nPPid:\t{parent}\nThreads:\t1\n").tasks == tasks


def test_disk_use_counts_closed_directories_and_hard_links_once(tmp_path):
    (tmp_path / "shut").mkdir()
    (tmp_path / "shut" / "a").write_bytes(b"x" * (1 << 20))
    os.link(tmp_path / "shut" / "a", tmp_path / "b")
    (tmp_path / "away").symlink_to("/usr")
    (tmp_path / "shut").chmod(0)
    used = tree_bytes(tmp_path)
    assert (1 << 20) <= used < (1 << 20) + 65536
    assert tree_bytes(tmp_path / "missing") == 0
