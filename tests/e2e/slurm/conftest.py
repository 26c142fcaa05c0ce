"""The tests of a module share one Slurm cluster."""

from tests.support.slurm import slurm

__all__ = ["slurm"]
