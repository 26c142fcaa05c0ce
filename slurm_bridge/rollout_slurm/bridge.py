"""The loop: list the jobs, plan, act; soon again while things move, seldom while they rest.

All requests to Slurm are made one after the other, and one query covers all jobs, so that a busy
controller is not made busier. Nothing is kept that a restart would miss.
"""

import asyncio
import logging
from datetime import UTC, datetime, timedelta

from rollout_client.errors import GatewayError
from rollout_crds.placement import SLURM_SCHEDULER
from rollout_crds.pod import Pod
from rollout_crds.resources import Event
from rollout_slurm.builder import Site, job_for_pod
from rollout_slurm.errors import SlurmRefused, SlurmUnavailable, SlurmUncertain
from rollout_slurm.plan import Cancel, Refusal, SetStatus, Submit, plan_bridge
from rollout_slurm.ports import Batch, Cluster, SlurmControl
from rollout_slurm.states import STATES

log = logging.getLogger(__name__)

SHORTEST_SECONDS = 1.0
"""Between two lists of jobs."""
_LONGEST_SECONDS = 10.0
_GROWTH = 1.3
_RETRY_SECONDS = 0.5
_FIRST_REFUSAL = timedelta(seconds=10)
_LONGEST_REFUSAL = timedelta(minutes=5)
_SETTLES_AFTER = timedelta(seconds=30)
"""By then a request that had no answer shows in the list of jobs, or never will."""
_MOST_SUBMISSIONS = 50
"""Between two lists of jobs."""


class Bridge:
    """Runs the pods that name it as Slurm jobs.

    Args:
        cluster: Where the pods are declared.
        slurm: Where the jobs run.
        site: What jobs find there.
    """

    def __init__(self, cluster: Cluster, slurm: SlurmControl, site: Site) -> None:
        self._cluster = cluster
        self._slurm = slurm
        self._site = site
        self._pods: dict[tuple[str, str], Pod] = {}
        self._refusals: dict[str, Refusal] = {}
        self._synced = asyncio.Event()
        self._changed = asyncio.Event()
        self._interval = SHORTEST_SECONDS

    async def run(self) -> None:
        """Serve until cancelled; the jobs go on."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            tasks.create_task(self._reconcile())

    async def _watch(self) -> None:
        while True:
            try:
                async for batch in self._cluster.watch():
                    self._take(batch)
                    self._synced.set()
            except (GatewayError, ValueError) as error:
                log.warning("pods: %s", error)
            await asyncio.sleep(_RETRY_SECONDS)

    def _take(self, batch: Batch) -> None:
        changed = {(c.namespace, c.name): c.object for c in batch.changed if c.kind == "Pod"}
        if batch.complete:
            self._pods = {key: pod for key, pod in self._pods.items() if key in changed}
        for key, pod in changed.items():
            self._pods.pop(key, None)
            if isinstance(pod, Pod) and pod.spec.scheduler_name == SLURM_SCHEDULER:
                self._pods[key] = pod
            self._changed.set()

    async def _reconcile(self) -> None:
        await self._synced.wait()
        while True:
            self._changed.clear()
            try:
                moved = await self._step()
                self._interval = SHORTEST_SECONDS if moved else self._interval * _GROWTH
            except (SlurmUnavailable, SlurmRefused) as error:
                log.warning("Slurm: %s", error)
                self._interval *= 2
            except GatewayError as error:
                log.warning("gateway: %s", error)
            self._interval = min(self._interval, _LONGEST_SECONDS)
            await asyncio.sleep(SHORTEST_SECONDS)
            if (rest := self._interval - SHORTEST_SECONDS) > 0:
                await self._until_changed(rest)

    async def _until_changed(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def _step(self) -> bool:
        """Do one round; return whether anything was to be done."""
        jobs = await self._slurm.jobs()
        now = datetime.now(UTC)
        alive = {pod.metadata.uid for pod in self._pods.values()}
        self._refusals = {uid: why for uid, why in self._refusals.items() if uid in alive}
        actions = plan_bridge(
            self._pods.values(), jobs, self._refusals, bridge=self._site.bridge, now=now
        )
        submissions = 0
        for action in actions:
            match action:
                case Cancel(job_ids):
                    log.info("cancelling %d jobs whose pods are gone", len(job_ids))
                    await self._slurm.cancel(job_ids)
                case SetStatus():
                    await self._report(action)
                case Submit(pod):
                    submissions += 1
                    if submissions <= _MOST_SUBMISSIONS and self._is_current(pod):
                        await self._submit(pod, now)
        return bool(actions)

    def _is_current(self, pod: Pod) -> bool:
        known = self._pods.get((pod.metadata.namespace, pod.metadata.name))
        return known is not None and known.metadata.uid == pod.metadata.uid

    async def _submit(self, pod: Pod, now: datetime) -> None:
        uid = pod.metadata.uid
        try:
            job_id = await self._slurm.submit(job_for_pod(pod, self._site))
        except SlurmRefused as error:
            failures = self._refusals[uid].failures + 1 if uid in self._refusals else 1
            wait = min(_FIRST_REFUSAL * 2 ** (failures - 1), _LONGEST_REFUSAL)
            self._refusals[uid] = Refusal("SubmissionRefused", str(error), now + wait, failures)
            await self._event(pod, "Warning", "SubmissionRefused", str(error))
        except SlurmUnavailable as error:
            wait = _SETTLES_AFTER if isinstance(error, SlurmUncertain) else timedelta(0)
            self._refusals[uid] = Refusal("SlurmUnavailable", str(error), now + wait)
            raise
        else:
            log.info("%s: submitted as Slurm job %d", pod.metadata.name, job_id)
            self._refusals.pop(uid, None)

    async def _report(self, action: SetStatus) -> None:
        pod, status = action.pod, action.status
        if not self._is_current(pod):
            return
        written = await self._cluster.write_status(pod, status)
        if written is not None and written.metadata.uid == pod.metadata.uid:
            self._pods[pod.metadata.namespace, pod.metadata.name] = written
        if status.phase == "Failed":
            disturbances = {m.reason for m in STATES.values() if m.is_disturbance}
            kind = "Normal" if status.reason in disturbances else "Warning"
            log.info("%s: %s", pod.metadata.name, status.message)
            await self._event(pod, kind, status.reason, status.message)

    async def _event(self, pod: Pod, kind: str, reason: str, message: str) -> None:
        meta = pod.metadata
        event = Event(
            kind="Pod",
            name=meta.name,
            namespace=meta.namespace,
            type=kind,
            reason=reason,
            message=message,
        )
        await self._cluster.post_event(event)
