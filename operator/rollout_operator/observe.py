"""Looks around an object before it is planned for: the only reader."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from rollout_crds.control import GatewayJob
from rollout_crds.llmpool import LLMPool
from rollout_crds.rolloutjob import RolloutJob
from rollout_crds.rolloutpool import RolloutPool
from rollout_operator.cache import Cache
from rollout_operator.errors import Unavailable
from rollout_operator.health import next_health
from rollout_operator.memory import Memory
from rollout_operator.observed import (
    BackendHealth,
    JobObserved,
    LLMPoolObserved,
    RolloutPoolObserved,
)
from rollout_operator.plan import Owner, Plan
from rollout_operator.plan_job import plan_job
from rollout_operator.plan_llm_pool import plan_llm_pool, targets
from rollout_operator.plan_rollout_pool import plan_rollout_pool
from rollout_operator.ports import EngineProbe, Gateway
from rollout_operator.sites import Site


@dataclass(frozen=True)
class Observer:
    """Observes through the cache, the gateway and the probe, and plans from that."""

    cache: Cache
    gateway: Gateway
    probe: EngineProbe
    site: Site
    progress_seconds: float
    """Least time between two writes of a status for its counters alone."""
    progress_share: float = 0.0
    """The same as a share of the time that the job has run: it bounds the writes of a job."""

    async def plan(self, owner: Owner, memory: Memory, now: datetime) -> Plan:
        """Observe around an object and decide what to do about it."""
        match owner:
            case RolloutJob():
                return plan_job(owner, await self._job(owner, memory, now), now)
            case RolloutPool():
                pods = self.cache.pods_of(owner.metadata.uid)
                return plan_rollout_pool(owner, RolloutPoolObserved(self.site, pods), now)
            case LLMPool():
                return plan_llm_pool(owner, await self._llm_pool(owner, memory, now), now)

    async def _job(self, job: RolloutJob, memory: Memory, now: datetime) -> JobObserved:
        namespace, shared = job.metadata.namespace, job.spec.pool_ref
        known, error = await self._known(job.metadata.uid)
        return JobObserved(
            site=self.site,
            pods=self.cache.pods_of(job.metadata.uid),
            llm_pool=self.cache.llm_pool(namespace, job.spec.llm.pool_ref.name),
            rollout_pool=self.cache.rollout_pool(namespace, shared.name) if shared else None,
            gateway_job=known,
            gateway_error=error,
            refusal=memory.refusal,
            progress_due=memory.status_is_older_than(self._progress_pause(job, now), now),
        )

    def _progress_pause(self, job: RolloutJob, now: datetime) -> float:
        start = job.status.start_time
        age = (now - start).total_seconds() if start is not None else 0.0
        return max(self.progress_seconds, self.progress_share * age)

    async def _known(self, uid: str) -> tuple[GatewayJob | None, str | None]:
        try:
            return await self.gateway.job(uid), None
        except Unavailable as error:
            return None, str(error)

    async def _llm_pool(self, pool: LLMPool, memory: Memory, now: datetime) -> LLMPoolObserved:
        if pool.metadata.deletion_timestamp is None:
            memory.health = await self._probe_all(pool, memory.health, now)
        return LLMPoolObserved(
            site=self.site,
            pods=self.cache.pods_of(pool.metadata.uid),
            health=tuple(memory.health.items()),
            registration=memory.fresh_registration(now),
        )

    async def _probe_all(
        self, pool: LLMPool, old: dict[str, BackendHealth], now: datetime
    ) -> dict[str, BackendHealth]:
        pods = self.cache.pods_of(pool.metadata.uid)
        urls = [target.url for target in targets(pool, self.site, pods)]
        results = await asyncio.gather(*(self.probe.probe(url) for url in urls))
        return {
            result.url: next_health(old.get(result.url), result, pool.spec.model, now)
            for result in results
        }
