"""What a person sees of a running job: pure functions of counters and time."""

from collections import deque
from dataclasses import dataclass, field

from rollout_client.cli.tables import duration
from rollout_crds.llmpool import LLMPool
from rollout_crds.meta import Condition
from rollout_crds.progress import JobProgress, StageCounters
from rollout_crds.reasons import ConditionType, Reason
from rollout_crds.rolloutjob import RolloutJob

WINDOW_SECONDS = 15.0
_ENOUGH_FOR_ETA = 3


@dataclass(frozen=True)
class Rates:
    """Tokens per second over the last seconds."""

    prompt: float = 0.0
    output: float = 0.0


@dataclass(frozen=True)
class View:
    """One moment of a job."""

    job: str
    progress: JobProgress
    rates: Rates
    elapsed_seconds: float
    eta_seconds: float | None
    waiting: str
    """What the job waits for; empty while rollouts run."""


@dataclass
class History:
    """Counters of the last seconds, for rates."""

    started: float
    """Time of the start in seconds."""
    samples: deque[tuple[float, JobProgress]] = field(default_factory=deque)
    first_finish: tuple[float, int] | None = None
    """When finished rollouts were first seen, and how many."""

    def add(self, now: float, progress: JobProgress) -> None:
        """Note the counters at a time."""
        self.samples.append((now, progress))
        while len(self.samples) > 2 and now - self.samples[0][0] > WINDOW_SECONDS:
            self.samples.popleft()
        if self.first_finish is None:
            self.first_finish = (now, progress.finished)

    def rates(self) -> Rates:
        """Tokens per second between the first and the last sample of the window."""
        if len(self.samples) < 2:
            return Rates()
        (before, old), (now, new) = self.samples[0], self.samples[-1]
        seconds = max(now - before, 1e-9)
        return Rates(
            max(0.0, (new.prompt_tokens - old.prompt_tokens) / seconds),
            max(0.0, (new.output_tokens - old.output_tokens) / seconds),
        )

    def eta_seconds(self) -> float | None:
        """Seconds to go at the pace since the start, once a few rollouts have finished."""
        if self.first_finish is None or not self.samples:
            return None
        since, already = self.first_finish
        now, progress = self.samples[-1]
        done = progress.finished - already
        left = progress.rollouts - progress.finished
        if done < _ENOUGH_FOR_ETA or left <= 0:
            return None
        return left * (now - since) / done

    def view(self, job: str, now: float, waiting: str) -> View:
        """The view at `now`."""
        latest = self.samples[-1][1] if self.samples else JobProgress()
        elapsed = now - self.started
        return View(job, latest, self.rates(), elapsed, self.eta_seconds(), waiting)


def waiting_for(job: RolloutJob, pool: LLMPool | None) -> str:
    """What an unfinished job waits for, in words; empty while rollouts run and at the end."""
    succeeded = _condition(job.status.conditions, ConditionType.SUCCEEDED)
    if succeeded is not None and succeeded.status != "Unknown":
        return ""
    progressing = _condition(job.status.conditions, ConditionType.PROGRESSING)
    if progressing is not None and progressing.status == "True":
        return ""
    telling = progressing or _condition(job.status.conditions, ConditionType.ACCEPTED)
    if telling is None:
        return "the operator"
    if telling.reason == Reason.WAITING_FOR_LLM_POOL and pool is not None:
        ready = _condition(pool.status.conditions, ConditionType.READY)
        return f"LLMPool {pool.metadata.name}: {_words(ready)}"
    return _words(telling)


def _condition(conditions: list[Condition], wanted: ConditionType) -> Condition | None:
    return next((c for c in conditions if c.type == wanted), None)


def _words(condition: Condition | None) -> str:
    if condition is None:
        return "the operator"
    return condition.message or condition.reason


def status_line(view: View) -> str:
    """The view in one line of plain text."""
    progress = view.progress
    stages = progress.stages
    parts = [
        duration(view.elapsed_seconds),
        f"init {stage_text(stages.init)}",
        f"run {stage_text(stages.run)}",
        f"eval {stage_text(stages.eval)}",
        f"finished {progress.finished}/{progress.rollouts}",
        rate_text(view),
    ]
    if view.waiting:
        parts.append(f"waiting for {view.waiting}")
    return " | ".join(parts)


def stage_text(counters: StageCounters) -> str:
    """The counters of a stage that are not zero."""
    named = {
        "queued": counters.queued,
        "running": counters.running,
        "done": counters.done,
        "failed": counters.failed,
        "cancelled": counters.cancelled,
    }
    return ", ".join(f"{count} {name}" for name, count in named.items() if count) or "-"


def rate_text(view: View) -> str:
    """Tokens per second, and the time to go where it can be told."""
    text = f"{view.rates.prompt:.0f} tokens/s in, {view.rates.output:.0f} out"
    if view.eta_seconds is not None:
        text += f", about {duration(view.eta_seconds)} to go"
    return text
