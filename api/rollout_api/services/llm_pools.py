"""The engines that RUN work is given to."""

from rollout_api.core.errors import NotFoundError
from rollout_api.store import llm_pools
from rollout_api.store.database import Database
from rollout_crds.control import LLMPoolRegistration


class LLMPools:
    """Pools as the operator registers them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def register(self, registration: LLMPoolRegistration) -> None:
        """Replace what is known of a pool."""
        await self._database.write(lambda tx: llm_pools.register_llm_pool(tx, registration))

    async def remove(self, namespace: str, name: str) -> None:
        """Forget a pool: no RUN work is given to it any more.

        Raises:
            NotFoundError: It was not registered.
        """
        if not await self._database.write(
            lambda tx: llm_pools.remove_llm_pool(tx, namespace, name)
        ):
            msg = f"LLMPool {name!r} of namespace {namespace!r} is not registered"
            raise NotFoundError(msg)
