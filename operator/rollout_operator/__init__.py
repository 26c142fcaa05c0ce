"""The reconciler: a pure plan, cluster ports and the local node."""
