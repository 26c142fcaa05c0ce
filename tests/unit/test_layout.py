"""The layout's one rule: plain top-level folders that hold import packages named `rollout_*`."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
NOT_SHIPPED = {"tests", "hack", "bench", "docs", "examples", "helm"}
PACKAGES = {
    "crds": {"rollout_crds"},
    "api": {"rollout_client", "rollout_api"},
    "sandbox_runtime": {"rollout_sandbox"},
    "stages": {"rollout_stages"},
    "operator": {"rollout_operator"},
    "slurm_bridge": {"rollout_slurm"},
    "trainers": {"rollout_trainers"},
}
FOLDERS = {path for path in ROOT.iterdir() if path.is_dir() and re.match(r"[a-z]", path.name)} - {
    ROOT / "dist"
}
SHIPPED = [ROOT / folder / name for folder, names in PACKAGES.items() for name in sorted(names)]


def committed_texts() -> list[tuple[str, str]]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout, so the project's files cannot be told from others")
    paths = [path for path in listed.stdout.split("\0") if (ROOT / path).is_file()]
    return [(path, (ROOT / path).read_text(encoding="utf-8", errors="replace")) for path in paths]


def test_no_top_level_folder_is_a_package() -> None:
    assert [folder.name for folder in FOLDERS if (folder / "__init__.py").exists()] == []


def test_each_folder_holds_its_packages_and_no_other() -> None:
    found = {
        folder.name: {init.parent.name for init in folder.glob("*/__init__.py")}
        for folder in FOLDERS
        if folder.name not in NOT_SHIPPED
    }
    assert found == PACKAGES


@pytest.mark.parametrize("package", SHIPPED, ids=lambda path: path.name)
def test_each_package_is_typed_and_says_what_it_is(package: Path) -> None:
    assert (package / "py.typed").is_file()
    assert (package / "__init__.py").read_text().startswith('"""')


def test_the_wheel_has_exactly_the_packages() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {ROOT / path for path in wheel["packages"]} == set(SHIPPED)
    assert set(PROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"]) == set(PACKAGES)


def test_checkers_and_layers_know_every_package() -> None:
    names = {package.name for package in SHIPPED}
    assert set(PROJECT["tool"]["mypy"]["packages"]) == names
    assert set(PROJECT["tool"]["importlinter"]["root_packages"]) == names
    assert set(PROJECT["tool"]["pyright"]["include"]) == set(PACKAGES)


def test_every_command_starts_with_rollout_and_none_is_named_like_a_command_of_kubectl() -> None:
    commands = PROJECT["project"]["scripts"]
    assert all(name.startswith("rollout") for name in commands)
    assert not {"rollout", "kubectl-rollout"} & set(commands)


def test_no_file_names_a_folder_of_one_machine() -> None:
    personal = re.compile(r"(?<![\w.$}/])/(?:root|home|Users|work)/[\w.-]+")
    found = {
        f"{path}: {match[0]}"
        for path, text in committed_texts()
        if not path.startswith("tests/")  # where made-up homes are examples of input
        for match in personal.finditer(text)
    }
    assert found == set()


def test_the_lock_file_names_only_the_public_index() -> None:
    lock = (ROOT / "uv.lock").read_text()
    assert set(re.findall(r'registry = "([^"]+)"', lock)) == {"https://pypi.org/simple"}
    hosts = set(re.findall(r'url = "https?://([^/"]+)', lock))
    assert hosts == {"files.pythonhosted.org"}
