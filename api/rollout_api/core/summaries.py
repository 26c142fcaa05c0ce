"""One rollout as a row of a table: where it is, from the units of its three stages."""

from collections.abc import Mapping
from typing import Literal

from rollout_api.core.units import FINAL_STATES, Unit, UnitState
from rollout_crds.result import RolloutSummary, Stage
from rollout_crds.wire import LeaseProgress

_ORDER = (Stage.INIT, Stage.RUN, Stage.EVAL)
_COUNTERS = {"turns", "prompt_tokens", "output_tokens"}
State = Literal["waiting", "queued", "running", "finished"]


def summarise(
    rollout: RolloutSummary, units: Mapping[Stage, Unit], running: LeaseProgress | None
) -> RolloutSummary:
    """Fill in stage, state, active times, and the counters of a RUN that goes on.

    The failure of an attempt is shown until its stage is done.
    """
    current = _current(units)
    seconds = {
        f"{unit.stage.value}_seconds": round(unit.active_seconds, 3)
        for unit in units.values()
        if unit.state in FINAL_STATES and unit.attempt > 0
    }
    state = "finished" if rollout.outcome is not None else _state(current)
    counters = running.model_dump(include=_COUNTERS) if running is not None else {}
    failure = rollout.failure
    if state != "finished" and failure is not None and failure.stage is not current.stage:
        failure = None
    fixed = {"stage": current.stage, "state": state, "failure": failure}
    changes = {**fixed, **seconds, **counters}
    return rollout.model_copy(update=changes)


def _current(units: Mapping[Stage, Unit]) -> Unit:
    """The unit that is not done and comes first, or the last one that was started."""
    for stage in _ORDER:
        if units[stage].state is not UnitState.DONE:
            return units[stage]
    return units[Stage.EVAL]


def _state(unit: Unit) -> State:
    if unit.stage is Stage.INIT:
        return "waiting"
    return "running" if unit.state is UnitState.LEASED else "queued"
