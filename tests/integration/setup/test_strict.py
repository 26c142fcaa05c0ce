"""Full runs fail on a skip that set-up could have prevented."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("workers", [[], ["-n", "1"]])
@pytest.mark.parametrize(
    ("reason", "code"), [("no apptainer: run `make setup`", 1), ("not available here: no GPU", 0)]
)
def test_only_skips_that_name_an_impossibility_pass(
    reason: str, code: int, workers: list[str], tmp_path: Path
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_it.py").write_text(
        f"import pytest\ndef test_runs(): pass\ndef test_skips(): pytest.skip({reason!r})\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.support.strict", *workers, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    assert (f"test_it.py::test_skips: {reason}" in done.stdout) == bool(code)
    assert "1 passed, 1 skipped" in done.stdout.splitlines()[-1]
