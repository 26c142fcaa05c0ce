"""Wires the operator for Kubernetes: kopf watches, the holder of the Lease reconciles."""

import asyncio
import contextlib
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import kopf

from rollout_client.transport import Transport
from rollout_operator.embedded import HttpGateway
from rollout_operator.handlers import make_registry, make_settings
from rollout_operator.kubernetes.api import KubernetesApi, open_api
from rollout_operator.kubernetes.cluster import KubernetesCluster
from rollout_operator.kubernetes.election import Election, LeaseSettings
from rollout_operator.kubernetes.feed import Feed
from rollout_operator.probe import HttpEngineProbe
from rollout_operator.reconciler import Reconciler
from rollout_operator.sites import KubernetesSite


@dataclass(frozen=True)
class Settings:
    """How the operator runs on Kubernetes."""

    gateway_url: str
    """Where the operator itself reaches the gateway."""
    lease: LeaseSettings
    site: KubernetesSite
    namespaces: tuple[str, ...] = ()
    """Those to look after; none: all of them."""
    liveness_endpoint: str | None = None
    """Where to answer probes, such as `http://0.0.0.0:8080/healthz`."""
    progress_seconds: float = 30.0
    """Least time between two writes of a status for its counters alone."""
    progress_share: float = 1.0
    """The same as a share of a job's time: counters at 1, 2, 4, 8 ... minutes, and at its end."""


async def run(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT.

    Raises:
        OperatorError: The cluster has not what it needs.
        ExceptionGroup: The Lease was lost, so that another process must go on.
    """
    async with open_api() as api, Transport(settings.gateway_url) as gateway:
        feed, stop, failures = Feed(), asyncio.Event(), list[BaseException]()
        cluster = KubernetesCluster(api, feed, settings.namespaces)
        await cluster.check()
        reconciler = Reconciler(
            cluster,
            HttpGateway(gateway),
            HttpEngineProbe(),
            settings.site,
            progress_seconds=settings.progress_seconds,
            progress_share=settings.progress_share,
        )
        registry = make_registry(feed)
        _lead_while_kopf_runs(registry, _lead(api, settings.lease, reconciler), stop, failures)
        await kopf.operator(
            registry=registry,
            settings=make_settings(),
            standalone=True,
            clusterwide=not settings.namespaces,
            namespaces=settings.namespaces,
            liveness_endpoint=settings.liveness_endpoint,
            stop_flag=stop,
        )
        if failures:
            raise failures[0]


async def _lead(api: KubernetesApi, lease: LeaseSettings, reconciler: Reconciler) -> None:
    election = Election(api, lease)
    await election.acquire()
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(election.hold())
            tasks.create_task(reconciler.run())
    except asyncio.CancelledError:
        await election.release()
        raise


def _lead_while_kopf_runs(
    registry: kopf.OperatorRegistry,
    leading: Coroutine[Any, Any, None],
    stop: asyncio.Event,
    failures: list[BaseException],
) -> None:
    """Kopf ends what it does not know of, so the leader starts and ends in its handlers."""
    task: asyncio.Task[None] | None = None

    def ended(done: asyncio.Task[None]) -> None:
        if not done.cancelled() and (error := done.exception()) is not None:
            failures.append(error)
        stop.set()

    async def start(**_: Any) -> None:
        nonlocal task
        task = asyncio.create_task(leading)
        task.add_done_callback(ended)

    async def end(**_: Any) -> None:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task

    kopf.on.startup(registry=registry)(start)
    kopf.on.cleanup(registry=registry)(end)
