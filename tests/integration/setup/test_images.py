"""The images run under Apptainer in both forms, for root and for a plain user."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.engine import cached

pytestmark = pytest.mark.sandbox
FORMS = ("", ".sif")
NOBODY = 65534
FAILING_AND_PASSING = "def test_passes():\n    pass\n\ndef test_fails():\n    assert 1 == 2\n"


def execute(
    apptainer: Path, image: Path, *command: str, prefix: tuple[str, ...] = (), bind: str = ""
) -> subprocess.CompletedProcess[str]:
    options = ["--userns", "--containall", "--no-home", *(["--bind", bind] if bind else [])]
    words = [*prefix, str(apptainer), "--silent", "exec", *options, str(image), *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("form", FORMS)
def test_pytest_runs_in_the_python_image_and_reports_what_fails(form: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(FAILING_AND_PASSING)
    image = cached("images", f"python{form}")
    command = ("python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", "/task")
    done = execute(cached("bin", "apptainer"), image, *command, bind=f"{tmp_path}:/task")
    assert done.returncode == 1
    assert "1 failed, 1 passed" in done.stdout


@pytest.mark.parametrize("form", FORMS)
def test_the_python_image_has_git(form: str) -> None:
    done = execute(
        cached("bin", "apptainer"), cached("images", f"python{form}"), "git", "--version"
    )
    assert done.stdout.startswith("git version")


@pytest.fixture(scope="module")
def public_copy() -> Iterator[Path]:
    """Apptainer and the busybox image where every user may read them."""
    with tempfile.TemporaryDirectory(prefix="images-") as folder:
        root = Path(folder)
        root.chmod(0o755)
        apptainer = cached("bin", "apptainer").resolve()
        shutil.copytree(apptainer.parents[1], root / "apptainer", symlinks=True)
        shutil.copytree(cached("images", "busybox"), root / "busybox", symlinks=True)
        shutil.copy(cached("images", "busybox.sif"), root / "busybox.sif")
        yield root


@pytest.mark.parametrize("form", FORMS)
def test_a_plain_user_starts_from_an_image_that_another_user_made(
    form: str, public_copy: Path
) -> None:
    ids = ("--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups")
    is_root = os.geteuid() == 0
    prefix = ("setpriv", *ids, "env", "HOME=/tmp") if is_root else ()
    done = execute(
        public_copy / "apptainer/bin/apptainer",
        public_copy / f"busybox{form}",
        *("sh", "-c", "id -u; cat /etc/passwd >/dev/null && echo readable"),
        prefix=prefix,
    )
    expected = NOBODY if is_root else os.geteuid()
    assert done.stdout.split() == [str(expected), "readable"], done.stderr
