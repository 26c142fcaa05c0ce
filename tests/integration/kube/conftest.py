"""The tests here share one control plane, and those of pods one node."""

from tests.support.cluster import api, plane, real_cluster

__all__ = ["api", "plane", "real_cluster"]
