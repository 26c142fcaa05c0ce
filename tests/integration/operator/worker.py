"""A worker in the test's own process that ends each unit of work as the test wants it."""

from rollout_client.worker import WorkerClient
from rollout_crds.result import Stage
from rollout_crds.trajectory import Trajectory
from rollout_crds.wire import (
    Completion,
    EvalDone,
    InitDone,
    Lease,
    LeaseRequest,
    PreparedEnvironment,
    RunArtifact,
    RunDone,
    WorkerHello,
)

NAME, INCARNATION = "test-worker", "1"


class Worker:
    """Leases the work of one job, of all stages."""

    def __init__(self, url: str, job_uid: str) -> None:
        self._client = WorkerClient(url)
        self._job_uid = job_uid

    async def __aenter__(self):
        await self._client.hello(WorkerHello(worker=NAME, incarnation=INCARNATION))
        return self

    async def __aexit__(self, *_):
        await self._client.aclose()

    async def lease(self, stage: Stage, wait_seconds: float = 10) -> list[Lease]:
        """Lease up to 16 units."""
        return await self._client.lease(
            LeaseRequest(
                worker=NAME,
                incarnation=INCARNATION,
                stage=stage,
                job_uid=self._job_uid,
                capacity=16,
                wait_seconds=wait_seconds,
            )
        )

    async def complete(self, lease: Lease, result) -> None:
        """End a lease."""
        completion = Completion(
            worker=NAME,
            incarnation=INCARNATION,
            work_id=lease.work_id,
            attempt=lease.attempt,
            result=result,
        )
        assert await self._client.complete(completion)

    async def prepare(self) -> None:
        """Do the INIT of all groups."""
        for lease in await self.lease(Stage.INIT):
            environment = PreparedEnvironment(image="python")
            await self.complete(lease, InitDone(environment=environment))

    async def run(self) -> list[Lease]:
        """Do the RUN of all rollouts."""
        leases = await self.lease(Stage.RUN)
        for lease in leases:
            trajectory = Trajectory(model="m", calls=(), messages=(), stop_reason="finished")
            result = RunDone(trajectory=trajectory, artifact=RunArtifact(answer="2"))
            await self.complete(lease, result)
        return leases

    async def evaluate(self) -> None:
        """Do the EVAL of all rollouts."""
        for lease in await self.lease(Stage.EVAL):
            await self.complete(lease, EvalDone(reward=1.0))
