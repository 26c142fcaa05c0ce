"""A real private Slurm cluster for tests, shared by those of one module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hack.setup.slurm import missing_programs
from hack.slurm.cluster import Cluster, running_cluster


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    """A running cluster."""
    if missing := missing_programs():
        pytest.skip(f"no Slurm ({' '.join(missing)}): run `python3 -m hack.setup slurm`")
    with running_cluster() as cluster:
        yield cluster
