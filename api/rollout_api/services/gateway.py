"""The services of one gateway, as routes find them."""

from dataclasses import dataclass

from rollout_api.services.hub import Hub
from rollout_api.services.jobs import Jobs
from rollout_api.services.llm_pools import LLMPools
from rollout_api.services.queue import Queue
from rollout_api.services.resources import Resources
from rollout_api.services.scheduler import Scheduler
from rollout_api.store.database import Database


@dataclass(frozen=True, slots=True)
class Gateway:
    """All services over one database."""

    hub: Hub
    database: Database
    resources: Resources
    jobs: Jobs
    queue: Queue
    llm_pools: LLMPools
    scheduler: Scheduler
