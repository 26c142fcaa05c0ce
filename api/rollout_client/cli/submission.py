"""What happens to a job of the same name: resume it, replace it, or refuse."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from rollout_client.cli.failure import CliError
from rollout_client.cli.follow import has_ended
from rollout_client.cli.sources import Source
from rollout_client.client import AsyncRolloutClient
from rollout_client.errors import NotFound, WaitTimeout
from rollout_crds.llmpool import LLMPool
from rollout_crds.rolloutjob import RolloutJob, RolloutJobSpec
from rollout_crds.rolloutpool import RolloutPool

_DELETE_SECONDS = 120.0
_POOL_SECONDS = 10.0
TEMPORARY = "rollout-operator.dev/temporary"
"""Annotation of pools that end with the run that made them."""


async def prepare_job(
    client: AsyncRolloutClient, job: RolloutJob, *, anew: bool, note: Callable[[str], None]
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
    if anew and not being_deleted:
        note(f"deleting RolloutJob/{name} of before")
        await client.delete(RolloutJob, name, namespace=namespace)
    if anew or being_deleted:
        await client.wait_deleted(
            RolloutJob, name, namespace=namespace, timeout_seconds=_DELETE_SECONDS
        )
    elif fields := differing_fields(found.spec, job.spec):
        msg = (
            f"RolloutJob/{name} exists with another {', '.join(fields)}; delete it "
            f"(`rolloutctl delete rj {name}`), rename this one, or use --replace"
        )
        raise CliError(msg)
    elif has_ended(found):
        note(f"RolloutJob/{name} has ended already; --replace runs it anew")
    else:
        note(f"RolloutJob/{name} exists with the same spec: resuming it")


async def require_llm_pool(
    client: AsyncRolloutClient, job: RolloutJob, sources: Sequence[Source]
) -> None:
    """Make sure that the job's LLMPool comes with the manifests or is at the gateway.

    Raises:
        CliError: It does neither, so the job would wait for ever.
    """
    name, namespace = job.spec.llm.pool_ref.name, job.metadata.namespace
    pools = [s.resource.metadata for s in sources if isinstance(s.resource, LLMPool)]
    if (name, namespace) in [(pool.name, pool.namespace) for pool in pools]:
        return
    try:
        await client.get(LLMPool, name, namespace=namespace)
    except NotFound as error:
        label = next(s.label for s in sources if s.resource is job)
        msg = (
            f"{label}: spec.llm.poolRef.name: there is no LLMPool {name!r}, neither in the "
            "manifest nor at the gateway; add it to the manifest"
        )
        raise CliError(msg) from error


def differing_fields(left: RolloutJobSpec, right: RolloutJobSpec) -> list[str]:
    """Paths of the top-level spec fields that differ; being suspended is no difference."""
    return [
        f"spec.{field.alias or name}"
        for name, field in RolloutJobSpec.model_fields.items()
        if name != "suspended" and getattr(left, name) != getattr(right, name)
    ]


async def with_temporary_pools(
    client: AsyncRolloutClient, sources: Sequence[Source]
) -> list[Source]:
    """Mark the pools that exist only for runs, so that they are not started again by a later `up`.

    A pool that somebody applied stays theirs: it has no such mark, and gets none.
    """
    return [await _marked(client, source) for source in sources]


async def delete_temporary_pools(client: AsyncRolloutClient, sources: Sequence[Source]) -> None:
    """Delete the marked pools, and wait a little until they are gone."""
    for source in sources:
        pool, metadata = source.resource, source.resource.metadata
        if isinstance(pool, LLMPool | RolloutPool) and TEMPORARY in metadata.annotations:
            with suppress(NotFound, WaitTimeout):
                await client.delete(type(pool), metadata.name, namespace=metadata.namespace)
                await _gone(client, pool, _POOL_SECONDS)


async def _marked(client: AsyncRolloutClient, source: Source) -> Source:
    pool = source.resource
    if not isinstance(pool, LLMPool | RolloutPool):
        return source
    metadata = pool.metadata
    try:
        found = await client.get(type(pool), metadata.name, namespace=metadata.namespace)
    except NotFound:
        pass
    else:
        if found.metadata.deletion_timestamp is not None:
            await _gone(client, pool, _DELETE_SECONDS)
        elif TEMPORARY not in found.metadata.annotations:
            return source
    annotations = {**metadata.annotations, TEMPORARY: "true"}
    marked = metadata.model_copy(update={"annotations": annotations})
    return replace(source, resource=pool.model_copy(update={"metadata": marked}))


async def _gone(client: AsyncRolloutClient, pool: LLMPool | RolloutPool, seconds: float) -> None:
    metadata = pool.metadata
    await client.wait_deleted(
        type(pool), metadata.name, namespace=metadata.namespace, timeout_seconds=seconds
    )
