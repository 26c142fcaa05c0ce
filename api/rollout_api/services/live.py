"""How far leased rollouts are, from heartbeats: for display only, so it is never stored."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from rollout_api.core.progress import Tokens
from rollout_crds.wire import LeaseProgress


@dataclass(frozen=True, slots=True)
class _Entry:
    progress: LeaseProgress
    expires_at: float


class LiveProgress:
    """The latest progress of each leased unit, forgotten when heartbeats stop."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: dict[str, _Entry] = {}

    def note(self, leases: Iterable[LeaseProgress], seconds: float) -> None:
        """Keep progress for some seconds."""
        expires_at = self._clock() + seconds
        for progress in leases:
            if progress.turns or progress.prompt_tokens or progress.output_tokens:
                self._entries[progress.work_id] = _Entry(progress, expires_at)

    def forget(self, work_id: str) -> None:
        """Drop a unit whose lease has ended."""
        self._entries.pop(work_id, None)

    def of(self, leased: Mapping[str, int]) -> dict[str, LeaseProgress]:
        """The progress of leased units, given the attempt of each."""
        found: dict[str, LeaseProgress] = {}
        for work_id, attempt in leased.items():
            entry = self._entries.get(work_id)
            if entry is not None and entry.progress.attempt == attempt:
                found[work_id] = entry.progress
        return found

    def prune(self) -> None:
        """Forget what no heartbeat has renewed."""
        now = self._clock()
        stale = [key for key, entry in self._entries.items() if entry.expires_at < now]
        for key in stale:
            del self._entries[key]


def total_tokens(progress: Iterable[LeaseProgress]) -> Tokens:
    """Add up the tokens of several units."""
    parts = list(progress)
    return Tokens(sum(p.prompt_tokens for p in parts), sum(p.output_tokens for p in parts))
