"""Requests to the Kubernetes API through its official client, with the failures of the ports."""

import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
from kubernetes.aio import client, config

from rollout_operator.errors import Conflict, Missing, Refused, Unavailable
from rollout_operator.kubernetes.names import FIELD_MANAGER

Object = dict[str, Any]
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
SERVICE_ACCOUNT_TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
_REQUEST_SECONDS = 30.0
_UNAUTHORIZED, _MISSING, _CONFLICT, _TOO_MANY, _OURS = 401, 404, 409, 429, 500


def runs_in_cluster(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to use the pod's service account: there is one, and no KUBECONFIG is named."""
    return not environ.get("KUBECONFIG") and SERVICE_ACCOUNT_TOKEN.exists()


@asynccontextmanager
async def open_api() -> AsyncIterator["KubernetesApi"]:
    """Connect with the pod's service account, or with KUBECONFIG or `~/.kube/config`."""
    settings = client.Configuration()
    if runs_in_cluster():
        config.load_incluster_config(client_configuration=settings)
    else:
        paths = os.environ.get("KUBECONFIG")
        await config.load_kube_config(config_file=paths, client_configuration=settings)
    async with client.ApiClient(settings) as connected:
        connected.user_agent = FIELD_MANAGER
        yield KubernetesApi(connected)


class KubernetesApi:
    """Sends JSON to the API server and gets JSON back."""

    def __init__(self, connected: client.ApiClient) -> None:
        self._client = connected

    async def get(self, path: str, **query: str) -> Object:
        """Read an object or a list."""
        return await self.request("GET", path, query=query)

    async def create(self, path: str, body: Object) -> Object:
        """Create an object in a collection."""
        return await self.request("POST", path, query={"fieldManager": FIELD_MANAGER}, body=body)

    async def apply(self, path: str, body: Object) -> Object:
        """State the fields that are ours; those that we stated before and no longer do go."""
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        return await self.request("PATCH", path, query=query, body=body, content_type=APPLY)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        """Send a request.

        Raises:
            Unavailable: No answer, or one to try again: overload, a token that is being renewed.
            Missing: There is no such object.
            Conflict: It exists already, or is another one than was meant.
            Refused: Anything else that the API server does not do.
        """
        try:
            sent = await self._client.param_serialize(
                method,
                path,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json", "Content-Type": content_type},
                body=body,
                auth_settings=["BearerToken"],
            )
            answer = await self._client.call_api(*sent, _request_timeout=_REQUEST_SECONDS)
            content = await answer.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            msg = f"the API server does not answer: {str(error) or type(error).__name__}"
            raise Unavailable(msg) from error
        if not 200 <= answer.status < 300:
            raise _failure(method, path, answer.status, content)
        found: Object = json.loads(content)
        return found


def _failure(method: str, path: str, code: int, content: bytes) -> Exception:
    reason, message = _words(content)
    told = message or f"the API server answers {code} to {method} {path}"
    if code == _MISSING:
        return Missing(told)
    if code == _CONFLICT:
        return Conflict(told, reason)
    if code in {_UNAUTHORIZED, _TOO_MANY} or code >= _OURS:
        return Unavailable(told)
    return Refused(told, reason)


def _words(content: bytes) -> tuple[str, str]:
    """Reason and message of a `Status`, if the answer is one."""
    try:
        status = json.loads(content)
        return str(status.get("reason", "")), str(status.get("message", ""))
    except (ValueError, AttributeError):
        return "", ""
