"""What routes share: the gateway's services, and parameters with the same meaning everywhere."""

from typing import Annotated, cast

from fastapi import Depends, Query, Request

from rollout_api.core.errors import NotFoundError
from rollout_api.services.gateway import Gateway
from rollout_crds.base import DnsLabel
from rollout_crds.resources import BY_PLURAL, ResourceKind


async def _gateway(request: Request) -> Gateway:
    return cast(Gateway, request.app.state.gateway)


async def _kind(plural: str) -> ResourceKind:
    kind = BY_PLURAL.get(plural)
    if kind is None:
        msg = f"no kind {plural!r}; there are {', '.join(sorted(BY_PLURAL))}"
        raise NotFoundError(msg)
    return kind


GatewayDependency = Annotated[Gateway, Depends(_gateway)]
KindDependency = Annotated[ResourceKind, Depends(_kind)]
Namespace = Annotated[DnsLabel, Query()]
