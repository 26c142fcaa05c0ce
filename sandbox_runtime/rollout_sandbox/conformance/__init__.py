"""What every backend must do, as named checks that run on real sandboxes.

Example::

    async with SandboxManager(root, owner="check") as manager:
        for name in CHECKS:
            await run_check(name, Subject(manager, image="/images/python.sif"))

The checks use only what a POSIX shell and busybox offer, so that they run in any image.
"""

from . import isolation, layers, lifecycle, limits, tools
from .core import CHECKS, ConformanceFailure, Subject, run_check

__all__ = [
    "CHECKS",
    "ConformanceFailure",
    "Subject",
    "isolation",
    "layers",
    "lifecycle",
    "limits",
    "run_check",
    "tools",
]
