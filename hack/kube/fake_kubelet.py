"""Nodes without containers, for tests of scale: they are Ready and play the pods bound to them.

A pod runs until it is deleted, unless its annotations say otherwise:

    fake-kubelet/start-seconds   time until it runs (default 0.05)
    fake-kubelet/run-seconds     time until it ends (default: never)
    fake-kubelet/exit-code       how it ends (default 0)
    fake-kubelet/phase: Pending  it never starts

One process plays many nodes with one watch, and costs two or three requests per pod.
"""

import asyncio
import base64
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx2

from hack.kube.errors import KubeError

PREFIX = "fake-kubelet/"
LABELS = {"rollout-operator.dev/fake-node": "true"}
_CAPACITY = {"cpu": "256", "memory": "1Ti", "pods": "5000", "nvidia.com/gpu": "64"}
_HEARTBEAT_S = 10.0
_WATCH_S = 300
_CONNECTIONS = 32
_RETRY_S = 0.5
_MERGE = {"Content-Type": "application/strategic-merge-patch+json"}

Object = dict[str, Any]


class FakeKubelet:
    """Plays nodes through a client of the API server."""

    def __init__(self, client: httpx2.AsyncClient, nodes: list[str]) -> None:
        self._client = client
        self._nodes = set(nodes)
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """What plays or removes a pod, by its uid."""

    async def run(self) -> None:
        """Play until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for name in self._nodes:
                group.create_task(self._keep_ready(name))
            group.create_task(self._follow())

    async def _keep_ready(self, name: str) -> None:
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **LABELS}}
        made = await self._client.post("/api/v1/nodes", json={"metadata": metadata})
        if made.status_code not in {httpx2.codes.CREATED, httpx2.codes.CONFLICT}:
            raise KubeError(f"node {name} was refused: {made.text}")
        while True:
            now = _now()
            ready = {
                **{"type": "Ready", "status": "True", "reason": "Fake"},
                **{"lastHeartbeatTime": now, "lastTransitionTime": now},
            }
            status = {"capacity": _CAPACITY, "allocatable": _CAPACITY, "conditions": [ready]}
            with suppress(httpx2.TransportError):
                await self._patch(f"/api/v1/nodes/{name}/status", {"status": status})
            await asyncio.sleep(_HEARTBEAT_S)

    async def _follow(self) -> None:
        while True:
            try:
                async for pod in self._pods():
                    self._handle(pod)
            except (httpx2.TransportError, httpx2.HTTPStatusError):
                await asyncio.sleep(_RETRY_S)

    async def _pods(self) -> AsyncIterator[Object]:
        """Yield the pods of our nodes, then each change of one, until the watch ends."""
        listed = await self._client.get("/api/v1/pods")
        listed.raise_for_status()
        for pod in listed.json()["items"]:
            yield pod
        query = {
            "watch": "1",
            "timeoutSeconds": str(_WATCH_S),
            "resourceVersion": listed.json()["metadata"]["resourceVersion"],
        }
        async with self._client.stream(
            "GET", "/api/v1/pods", params=query, timeout=_WATCH_S + 10
        ) as answer:
            async for line in answer.aiter_lines():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] == "DELETED":
                    self._forget(event["object"]["metadata"]["uid"])
                else:
                    yield event["object"]

    def _handle(self, pod: Object) -> None:
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") not in self._nodes:
            return
        if "deletionTimestamp" in pod["metadata"]:
            if uid in self._tasks:
                self._tasks[uid].cancel()
            self._start(_removal(uid), self._remove(pod))
        elif pod["status"].get("phase") == "Pending":
            self._start(uid, self._play(pod))

    def _start(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        if key in self._tasks:
            work.close()
        else:
            self._tasks[key] = asyncio.create_task(self._attempt(key, work))

    async def _attempt(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except httpx2.TransportError:  # the next listing starts it again
            del self._tasks[key]

    def _forget(self, uid: str) -> None:
        for key in (uid, _removal(uid)):
            if key in self._tasks:
                self._tasks.pop(key).cancel()

    async def _play(self, pod: Object) -> None:
        wishes = pod["metadata"].get("annotations", {})
        if wishes.get(f"{PREFIX}phase") == "Pending":
            return
        await asyncio.sleep(float(wishes.get(f"{PREFIX}start-seconds", "0.05")))
        started = _now()
        await self._set_status(pod, "Running", {"running": {"startedAt": started}})
        if f"{PREFIX}run-seconds" not in wishes:
            return
        await asyncio.sleep(float(wishes[f"{PREFIX}run-seconds"]))
        code = int(wishes.get(f"{PREFIX}exit-code", "0"))
        ended = {
            **{"exitCode": code, "reason": "Error" if code else "Completed"},
            **{"startedAt": started, "finishedAt": _now()},
        }
        await self._set_status(pod, "Failed" if code else "Succeeded", {"terminated": ended})

    async def _set_status(self, pod: Object, phase: str, state: Object) -> None:
        ready = phase == "Running"
        status = {
            "phase": phase,
            "podIP": "198.51.100.2",
            "hostIP": "198.51.100.1",
            "startTime": _now(),
            "conditions": [_condition("Initialized", holds=True)]
            + [_condition(name, holds=ready) for name in ("Ready", "ContainersReady")],
            "containerStatuses": [
                _container(container, state, ready=ready) for container in pod["spec"]["containers"]
            ],
        }
        body = {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status}
        await self._patch(f"{_path(pod)}/status", body)

    async def _remove(self, pod: Object) -> None:
        options = {
            "gracePeriodSeconds": 0,
            "preconditions": {"uid": pod["metadata"]["uid"]},
        }
        await self._client.request("DELETE", _path(pod), json=options)

    async def _patch(self, path: str, body: Object) -> None:
        await self._client.patch(path, content=json.dumps(body), headers=_MERGE)


def _removal(uid: str) -> str:
    return f"{uid}/removal"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def _condition(name: str, *, holds: bool) -> Object:
    return {"type": name, "status": str(holds), "lastTransitionTime": _now()}


def _container(container: Object, state: Object, *, ready: bool) -> Object:
    return {
        **{"name": container["name"], "image": container["image"], "imageID": "fake"},
        **{"ready": ready, "started": ready, "restartCount": 0, "state": state},
    }


def client_of(kubeconfig: Path) -> httpx2.AsyncClient:
    """Return a client for the only cluster and user of a kubeconfig that `hack.kube` wrote."""
    config = json.loads(kubeconfig.read_text())
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(server["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    with tempfile.NamedTemporaryFile() as pair:  # the only way in for a client's certificate
        for part in ("client-certificate-data", "client-key-data"):
            pair.write(base64.b64decode(user[part]))
        pair.flush()
        context.load_cert_chain(pair.name)
    limits = httpx2.Limits(max_connections=_CONNECTIONS)
    return httpx2.AsyncClient(base_url=server["server"], verify=context, limits=limits, timeout=30)


async def play(kubeconfig: Path, count: int) -> None:
    """Play `count` nodes named `fake-0`, `fake-1`, ... until it is cancelled."""
    async with client_of(kubeconfig) as client:
        await FakeKubelet(client, [f"fake-{number}" for number in range(count)]).run()


def run_nodes(kubeconfig: Path, count: int) -> None:
    """Play nodes until the process is interrupted."""
    with suppress(KeyboardInterrupt):
        asyncio.run(play(kubeconfig, count))
