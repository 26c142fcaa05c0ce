"""The choice of the engine for a rollout: the one with the fewest rollouts on it now.

The counts come from the present leases, so they fall again when rollouts end, and a backend that
joins late is filled at once but not beyond the others.
"""

import heapq
from collections.abc import Mapping


class LeastAssigned:
    """A min-heap of backends by the number of rollouts assigned to them."""

    def __init__(self, assigned: Mapping[str, int]) -> None:
        """Start from the present number of rollouts of each healthy backend, by name."""
        self._heap = [(count, name) for name, count in assigned.items()]
        heapq.heapify(self._heap)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def assign(self) -> str:
        """Name the least assigned backend and count one more rollout on it.

        Raises:
            IndexError: There is no backend.
        """
        count, name = self._heap[0]
        heapq.heapreplace(self._heap, (count + 1, name))
        return name
