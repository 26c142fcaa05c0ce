"""How the operator tells which engines there are."""

from fastapi import APIRouter

from rollout_api.core.errors import InvalidInputError
from rollout_api.routes.dependencies import GatewayDependency
from rollout_crds.control import LLMPoolRegistration
from rollout_crds.validation import FieldError

router = APIRouter(prefix="/internal/v1/llmpools/{namespace}/{name}", tags=["operator"])


@router.put("", status_code=204)
async def register(
    gateway: GatewayDependency, namespace: str, name: str, registration: LLMPoolRegistration
) -> None:
    """Replace what is known of a pool."""
    if (registration.namespace, registration.name) != (namespace, name):
        message = f"must be {namespace}/{name} as in the URL"
        msg = f"namespace and name {message}"
        raise InvalidInputError(msg, [FieldError("name", message)])
    await gateway.llm_pools.register(registration)


@router.delete("", status_code=204)
async def remove(gateway: GatewayDependency, namespace: str, name: str) -> None:
    """Forget a pool."""
    await gateway.llm_pools.remove(namespace, name)
