"""What happens to a job of the same name: resume it, replace it, or refuse."""

from collections.abc import Callable, Sequence

from rollout_client.cli.failure import CliError
from rollout_client.cli.sources import Source
from rollout_client.client import AsyncRolloutClient
from rollout_client.errors import NotFound
from rollout_crds.llmpool import LLMPool
from rollout_crds.rolloutjob import RolloutJob, RolloutJobSpec
from rollout_crds.rolloutpool import RolloutPool

_DELETE_SECONDS = 120.0


async def prepare_job(
    client: AsyncRolloutClient, job: RolloutJob, *, replace: bool, note: Callable[[str], None]
) -> None:
    """Make sure that applying `job` starts or resumes it.

    Raises:
        CliError: A job of that name has another spec.
        GatewayError: The gateway refused something.
    """
    name, namespace = job.metadata.name, job.metadata.namespace
    try:
        found = await client.get(RolloutJob, name, namespace=namespace)
    except NotFound:
        return
    being_deleted = found.metadata.deletion_timestamp is not None
    if replace and not being_deleted:
        note(f"deleting RolloutJob/{name} of before")
        await client.delete(RolloutJob, name, namespace=namespace)
    if replace or being_deleted:
        await client.wait_deleted(
            RolloutJob, name, namespace=namespace, timeout_seconds=_DELETE_SECONDS
        )
    elif fields := differing_fields(found.spec, job.spec):
        msg = (
            f"RolloutJob/{name} exists with another {', '.join(fields)}; delete it "
            f"(`rolloutctl delete rj {name}`), rename this one, or use --replace"
        )
        raise CliError(msg)
    else:
        note(f"RolloutJob/{name} exists with the same spec: resuming it")


def differing_fields(left: RolloutJobSpec, right: RolloutJobSpec) -> list[str]:
    """Paths of the top-level spec fields that differ; being suspended is no difference."""
    return [
        f"spec.{field.alias or name}"
        for name, field in RolloutJobSpec.model_fields.items()
        if name != "suspended" and getattr(left, name) != getattr(right, name)
    ]


async def created_pools(
    client: AsyncRolloutClient, sources: Sequence[Source]
) -> tuple[LLMPool | RolloutPool, ...]:
    """The pools of the manifests that do not exist yet."""
    pools = [s.resource for s in sources if isinstance(s.resource, LLMPool | RolloutPool)]
    return tuple([pool for pool in pools if not await _exists(client, pool)])


async def _exists(client: AsyncRolloutClient, pool: LLMPool | RolloutPool) -> bool:
    try:
        await client.get(type(pool), pool.metadata.name, namespace=pool.metadata.namespace)
    except NotFound:
        return False
    return True
