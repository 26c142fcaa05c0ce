"""The JSONL file: each record once, whole lines, one writer."""

import json
import resource
from pathlib import Path

import pytest

from rollout_client.cli.failure import CliError
from rollout_client.cli.recorder import RecordFile


def line(rollout: str, job: str = "job-uid-1") -> str:
    return json.dumps({"job_uid": job, "rollout_id": rollout})


def test_records_that_are_there_already_are_not_written_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.jsonl"
    with RecordFile(path) as file:
        assert file.append([line("a"), line("b")]) == 2
    with RecordFile(path) as file:
        assert file.assign("job-uid-1") is None
        assert file.count == 2
        assert file.append([line("a"), line("b"), line("c"), line("c")]) == 1
    assert path.read_text().splitlines() == [line("a"), line("b"), line("c")]


def test_half_a_line_of_an_interrupted_run_is_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(f"{line('a')}\n{line('b')[:9]}")
    with RecordFile(path) as file:
        file.append([line("a"), line("b")])
    assert path.read_text().splitlines() == [line("a"), line("b")]


def test_the_file_of_an_earlier_job_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text(f"{line('a', 'old-uid-123')}\n")
    with RecordFile(path) as file:
        assert file.assign("job-uid-1") == tmp_path / "out.old-uid-.jsonl"
        assert file.append([line("a")]) == 1
    assert (tmp_path / "out.old-uid-.jsonl").read_text() == f"{line('a', 'old-uid-123')}\n"
    assert path.read_text() == f"{line('a')}\n"


def test_two_runs_never_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with RecordFile(path), pytest.raises(CliError, match="another run writes to it"):
        RecordFile(path)


def test_a_file_of_something_else_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my notes\n")
    with pytest.raises(CliError, match=r"notes.txt:1: is not a record of a rollout"):
        RecordFile(path)
    assert path.read_text() == "my notes\n"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="cannot be written: Is a directory"):
        RecordFile(tmp_path)


def test_no_empty_file_is_left(tmp_path: Path) -> None:
    with RecordFile(tmp_path / "out.jsonl") as file:
        file.assign("job-uid-1")
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_whole_lines_and_a_remedy(
    tmp_path: Path,
) -> None:
    path = tmp_path / "out.jsonl"
    with RecordFile(path) as file:
        file.append([line("a")])
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 9, limits[1]))
        try:
            with pytest.raises(CliError, match=r"cannot be written: .*; when that is mended"):
                file.append([line("b")])
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        file.append([line("b")])
    assert path.read_text().splitlines() == [line("a"), line("b")]
