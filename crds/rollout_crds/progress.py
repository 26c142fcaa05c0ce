"""How far a RolloutJob is: the counters of its status."""

from pydantic import Field

from rollout_crds.base import Count, ResourceModel


class StageCounters(ResourceModel):
    """Units of work of one stage: groups in INIT, rollouts in RUN and EVAL."""

    queued: Count = 0
    """Waiting for a worker."""
    running: Count = 0
    """Leased by a worker."""
    done: Count = 0
    """Ended with a result."""
    failed: Count = 0
    """Failed for good."""
    cancelled: Count = 0
    """Ended on request or by the job's deadline."""


class OutcomeCounters(ResourceModel):
    """Finished rollouts by outcome."""

    scored: Count = 0
    """The grader gave a reward, 0 included."""
    policy_error: Count = 0
    """The agent made grading impossible."""
    infra_error: Count = 0
    """Something of ours, the site's or the task's failed."""
    cancelled: Count = 0
    """Ended on request, by a deadline of the job, or because it was not needed any more."""
    stale: Count = 0
    """Finished with weights older than the job allows."""


class StagesCounters(ResourceModel):
    """Counters of each stage."""

    init: StageCounters = Field(default_factory=StageCounters)
    """Groups whose environment is prepared."""
    run: StageCounters = Field(default_factory=StageCounters)
    """Rollouts whose agent runs."""
    eval: StageCounters = Field(default_factory=StageCounters)
    """Rollouts that are graded."""


class JobProgress(ResourceModel):
    """How far a job is: counters only, the rows are at the gateway."""

    groups: Count = 0
    """Groups, one per valid task."""
    rollouts: Count = 0
    """Rollouts of all groups."""
    finished: Count = 0
    """Rollouts that have an outcome."""
    invalid_tasks: Count = 0
    """Lines of the task source that were refused; the others go on."""
    stages: StagesCounters = Field(default_factory=StagesCounters)
    outcomes: OutcomeCounters = Field(default_factory=OutcomeCounters)
    prompt_tokens: Count = 0
    """Prompt tokens summed over all model calls."""
    output_tokens: Count = 0
    """Output tokens summed over all model calls."""
