"""Why a worker has to drop a lease that it lists in its heartbeat."""

from typing import Literal

from rollout_api.core.units import UnitState

RevocationReason = Literal["cancelled", "suspended", "lost"]


def revocation_reason(
    state: UnitState | None, *, cancelled: bool, suspended: bool
) -> RevocationReason:
    """Name the reason, from the unit's state (None: it does not exist) and its job's."""
    if cancelled or state is UnitState.CANCELLED:
        return "cancelled"
    if suspended and state in {UnitState.QUEUED, UnitState.BACKOFF}:
        return "suspended"
    return "lost"
