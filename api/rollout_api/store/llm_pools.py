"""Registered LLMPools and their backends, as the operator last saw them."""

from sqlalchemy import Connection, delete, insert, select

from rollout_api.store.schema import llm_pools
from rollout_api.store.writer import Transaction
from rollout_crds.control import LLMPoolRegistration


def pool_key(namespace: str, name: str) -> str:
    """The form in which jobs refer to a pool."""
    return f"{namespace}/{name}"


def find_llm_pool(connection: Connection, key: str) -> LLMPoolRegistration | None:
    """Look up a pool by `namespace/name`."""
    namespace, _, name = key.partition("/")
    statement = select(llm_pools.c.body).where(
        llm_pools.c.namespace == namespace, llm_pools.c.name == name
    )
    body = connection.execute(statement).scalar()
    return LLMPoolRegistration.model_validate_json(body) if body is not None else None


def register_llm_pool(tx: Transaction, registration: LLMPoolRegistration) -> None:
    """Replace what is known of a pool."""
    remove_llm_pool(tx, registration.namespace, registration.name)
    tx.connection.execute(
        insert(llm_pools),
        {
            "namespace": registration.namespace,
            "name": registration.name,
            "body": registration.model_dump_json(by_alias=True),
        },
    )
    tx.wake(("work", "run"))


def remove_llm_pool(tx: Transaction, namespace: str, name: str) -> bool:
    """Forget a pool; says whether it was known."""
    statement = delete(llm_pools).where(
        llm_pools.c.namespace == namespace, llm_pools.c.name == name
    )
    return tx.connection.execute(statement).rowcount > 0
