"""The built wheel holds the packages that the project declares, typed, and nothing else."""

import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[PurePosixPath]:
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not on PATH, so no wheel can be built")
    folder = tmp_path_factory.mktemp("dist")
    command = [uv, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, timeout=100)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return [PurePosixPath(name) for name in archive.namelist()]


def test_it_holds_exactly_the_packages(names: list[PurePosixPath]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    packages = {Path(package).name for package in declared}
    tops = {name.parts[0] for name in names if not name.parts[0].endswith(".dist-info")}
    assert tops == packages
    assert {str(name.parent) for name in names if name.name == "py.typed"} == packages


def test_it_holds_no_left_over_files(names: list[PurePosixPath]) -> None:
    left_over = [name for name in names if "__pycache__" in name.parts or name.suffix == ".pyc"]
    assert left_over == []
