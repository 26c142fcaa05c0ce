"""Python SDK of the gateway, and the rolloutctl command.

    from rollout_client import RolloutClient

    with RolloutClient() as client:
        for record in client.trajectories("demo"):
            ...

The names below are the public ones. They are loaded on first use, because commands that only need
a table must not pay for the models.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rollout_client.client import AsyncRolloutClient, RecordPage
    from rollout_client.errors import (
        ClientError,
        ConditionFailed,
        Conflict,
        FieldError,
        GatewayError,
        Invalid,
        NotFound,
        ServerError,
        TooManyRequests,
        Unavailable,
        WaitTimeout,
    )
    from rollout_client.sync import RolloutClient

__all__ = [
    "AsyncRolloutClient",
    "ClientError",
    "ConditionFailed",
    "Conflict",
    "FieldError",
    "GatewayError",
    "Invalid",
    "NotFound",
    "RecordPage",
    "RolloutClient",
    "ServerError",
    "TooManyRequests",
    "Unavailable",
    "WaitTimeout",
]

_MODULES = {
    "AsyncRolloutClient": "client",
    "RecordPage": "client",
    "RolloutClient": "sync",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    module = import_module(f"{__name__}.{_MODULES.get(name, 'errors')}")
    return getattr(module, name)
