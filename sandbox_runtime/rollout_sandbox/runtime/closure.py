"""Which distributions and which shared libraries a self-contained Python needs."""

import re
import subprocess
from importlib.metadata import Distribution, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# What the in-sandbox server imports.
ROOTS = ("ptyprocess", "jupyter-client", "ipykernel")
# Optional at run time for the kernel, large, and only for attaching a debugger.
LEFT_OUT = frozenset({"debugpy"})

_LDD_LINE = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x")


def distributions(roots: tuple[str, ...] = ROOTS) -> list[Distribution]:
    """Return the roots and all they require here, by name, without extras."""
    found: dict[str, Distribution] = {}
    pending = list(roots)
    while pending:
        name = canonicalize_name(pending.pop())
        if name in found or name in LEFT_OUT:
            continue
        found[name] = distribution(name)
        pending += _requirements(found[name])
    return [found[name] for name in sorted(found)]


def _requirements(dist: Distribution) -> list[str]:
    parsed = [Requirement(text) for text in dist.requires or []]
    return [r.name for r in parsed if r.marker is None or r.marker.evaluate({"extra": ""})]


def parse_ldd(text: str) -> list[Path]:
    r"""Return the absolute paths in the output of `ldd`: libraries and the loader itself.

    >>> parse_ldd("\tlibm.so.6 => /lib/libm.so.6 (0x01)\n\t/lib64/ld.so (0x02)\n")
    [PosixPath('/lib/libm.so.6'), PosixPath('/lib64/ld.so')]
    """
    return [Path(m[1]) for line in text.splitlines() if (m := _LDD_LINE.match(line))]


def shared_libraries(objects: list[Path], inside: Path) -> set[Path]:
    """Return the libraries that `objects` need and that do not lie in the tree `inside`."""
    needed: set[Path] = set()
    for path in objects:
        result = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False)
        needed |= {lib for lib in parse_ldd(result.stdout) if not lib.is_relative_to(inside)}
    return needed
