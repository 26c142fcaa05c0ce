"""Logs stay bounded."""

import os

from rollout_operator.node.logs import last_line, prune, rotate


def test_a_log_that_is_too_large_is_moved_aside_while_it_is_written_to(tmp_path):
    log = tmp_path / "pod.log"
    with log.open("ab") as writer:
        writer.write(b"x" * 100)
        writer.flush()
        rotate(log, max_bytes=50)
        writer.write(b"later")
        writer.flush()
    assert (tmp_path / "pod.log.1").read_bytes() == b"x" * 100
    assert log.read_bytes() == b"later"


def test_a_small_log_stays(tmp_path):
    log = tmp_path / "pod.log"
    log.write_bytes(b"short")
    rotate(log, max_bytes=50)
    assert [path.name for path in tmp_path.iterdir()] == ["pod.log"]


def test_the_oldest_logs_of_pods_that_are_gone_are_removed(tmp_path):
    for age, name in enumerate(["new", "old", "oldest", "used"]):
        log = tmp_path / f"{name}.log"
        log.touch()
        os.utime(log, (1000 - age, 1000 - age))
    (tmp_path / "oldest.log.1").touch()
    prune(tmp_path, {tmp_path / "used.log"}, max_old=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.log", "used.log"]


def test_the_last_line_with_text_is_found_and_cut(tmp_path):
    log = tmp_path / "pod.log"
    assert last_line(log) == ""
    log.write_bytes(b"x" * 10_000 + b"\nfirst\n  the cause \n\n")
    assert last_line(log) == "the cause"
    assert last_line(log, max_characters=3) == "the"
