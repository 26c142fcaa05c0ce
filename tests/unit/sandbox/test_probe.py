"""Which backend is used, and what is said when none can be."""

import pytest

from rollout_sandbox.errors import SandboxUnavailable
from rollout_sandbox.probe import Capability, choose

NAMES = ("user-namespaces", "kernel-overlay", "bubblewrap", "apptainer", "fuse", "fuse-overlayfs")


def capabilities(**missing: str) -> list[Capability]:
    reasons = {name.replace("_", "-"): reason for name, reason in missing.items()}
    return [Capability(name, name not in reasons, reasons.get(name, "")) for name in NAMES]


def test_apptainer_is_preferred():
    assert choose(capabilities(), None) == "apptainer"


def test_bubblewrap_takes_over():
    assert choose(capabilities(fuse="/dev/fuse is missing"), None) == "bubblewrap"


def test_a_wanted_backend_is_not_replaced():
    with pytest.raises(SandboxUnavailable, match=r"apptainer lacks fuse \(/dev/fuse is missing\)"):
        choose(capabilities(fuse="/dev/fuse is missing"), "apptainer")


def test_what_each_backend_lacks_is_told():
    with pytest.raises(SandboxUnavailable, match=r"apptainer lacks .*; bubblewrap lacks .*EPERM"):
        choose(capabilities(user_namespaces="EPERM"), None)


def test_unknown_backends_are_refused():
    with pytest.raises(SandboxUnavailable, match="known: apptainer, bubblewrap"):
        choose(capabilities(), "docker")
