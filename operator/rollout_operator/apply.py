"""Does what a plan says: the only writer."""

from dataclasses import dataclass
from datetime import datetime

from rollout_crds.control import JobSubmission
from rollout_crds.pod import Pod
from rollout_crds.reasons import Reason
from rollout_operator.cache import Cache, key_of
from rollout_operator.errors import Refused, Unavailable
from rollout_operator.memory import Memory
from rollout_operator.observed import Refusal
from rollout_operator.plan import (
    FINALIZER,
    GatewayAction,
    Owner,
    Plan,
    PurgeJob,
    RegisterLLMPool,
    SetJobState,
    SubmitJob,
    UnregisterLLMPool,
    pod_refused_event,
)
from rollout_operator.ports import Cluster, Gateway


@dataclass(frozen=True)
class Applier:
    """Carries plans out on the cluster and the gateway."""

    cluster: Cluster
    gateway: Gateway
    cache: Cache

    async def apply(self, owner: Owner, plan: Plan, memory: Memory, now: datetime) -> None:
        """Carry a plan out, in an order that can be broken off and repeated at any point.

        Raises:
            Refused: A pod could not be created; all else was done.
            OperatorError: A step failed; those after it were not done.
        """
        finalizers = owner.metadata.finalizers
        if plan.acquire_finalizer:
            self.cache.put(await self.cluster.write_finalizers(owner, (*finalizers, FINALIZER)))
        for action in plan.gateway:
            await self._act(owner, action, memory, now)
        for pod in plan.delete_pods:
            await self.cluster.delete(pod)
            self.cache.remove(key_of(pod))
        refused = [error for pod in plan.create_pods if (error := await self._create(owner, pod))]
        if plan.status is not None:
            self.cache.put(await self.cluster.write_status(owner, plan.status))
            memory.status_written_at = now
        for event in plan.events:
            await self.cluster.post_event(event)
        if plan.release_finalizer:
            kept = tuple(name for name in finalizers if name != FINALIZER)
            await self.cluster.write_finalizers(owner, kept)
        if plan.delete_self:
            await self.cluster.delete(owner)
        if refused:
            raise refused[0]

    async def _create(self, owner: Owner, pod: Pod) -> Refused | None:
        try:
            self.cache.put(await self.cluster.create_pod(pod))
        except Refused as error:
            await self.cluster.post_event(pod_refused_event(owner, str(error)))
            return error
        return None

    async def _act(
        self, owner: Owner, action: GatewayAction, memory: Memory, now: datetime
    ) -> None:
        match action:
            case SubmitJob(submission):
                memory.refusal = await self._submit(owner, submission, now)
            case SetJobState(uid, state):
                await self.gateway.set_state(uid, state)
            case PurgeJob(uid):
                await self.gateway.purge(uid)
            case RegisterLLMPool(registration):
                await self.gateway.register(registration)
                memory.registration, memory.registered_at = registration, now
            case UnregisterLLMPool(namespace, name):
                await self.gateway.unregister(namespace, name)

    async def _submit(
        self, owner: Owner, submission: JobSubmission, now: datetime
    ) -> Refusal | None:
        generation = owner.metadata.generation
        try:
            await self.gateway.submit(submission)
        except Unavailable as error:
            return Refusal(Reason.GATEWAY_UNAVAILABLE, str(error), generation, now)
        except Refused as error:
            unreadable = error.reason == Reason.TASK_SOURCE_UNREADABLE
            reason = Reason.TASK_SOURCE_UNREADABLE if unreadable else Reason.INVALID_SPEC
            return Refusal(reason, str(error), generation, now)
        return None
