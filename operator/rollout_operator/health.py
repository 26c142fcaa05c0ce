"""From single probes to the health of a backend: a pure fold over their results.

A refused connection counts at once. A slow answer counts only when it repeats, because a busy
engine must not lose its rollouts to one late probe.
"""

from datetime import datetime

from rollout_operator.observed import BackendHealth, ProbeResult

TIMEOUTS_TOLERATED = 2


def next_health(
    old: BackendHealth | None, result: ProbeResult, model: str, now: datetime
) -> BackendHealth:
    """The health of the backend of `model` after another probe."""
    if result.error is not None and result.timed_out and _may_be_slow(old):
        assert old is not None  # noqa: S101 - `_may_be_slow` holds only for a healthy backend
        return BackendHealth("healthy", "", old.max_model_len, timeouts=old.timeouts + 1)
    since = old.failing_since if old is not None and old.failing_since else now
    if result.error is not None:
        message = f"{result.url}: {result.error}"
        return BackendHealth("unreachable", message, failing_since=since)
    length = dict(result.models)
    if model not in length:
        return BackendHealth("model_not_served", _not_served(result, model), failing_since=since)
    return BackendHealth("healthy", "", length[model])


def _may_be_slow(old: BackendHealth | None) -> bool:
    return old is not None and old.state == "healthy" and old.timeouts < TIMEOUTS_TOLERATED


def _not_served(result: ProbeResult, model: str) -> str:
    served = ", ".join(f"`{name}`" for name, _ in result.models) or "no model"
    return (
        f"{result.url} serves {served}, not `{model}`: correct `spec.model`, or start the server "
        f"with `--served-model-name {model}`"
    )
