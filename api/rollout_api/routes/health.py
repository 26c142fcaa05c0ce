"""Whether the process lives, and whether it can serve."""

from fastapi import APIRouter
from sqlalchemy import select

from rollout_api.routes.dependencies import GatewayDependency

router = APIRouter(tags=["health"])


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(gateway: GatewayDependency) -> dict[str, str]:
    """The database takes a transaction."""
    await gateway.database.write(lambda tx: tx.connection.execute(select(1)).scalar())
    return {"status": "ok"}
