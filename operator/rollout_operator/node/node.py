"""The node: static pods first, then the pods of the cluster, and everything down in order."""

import asyncio
import json
import logging
import os
import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from rollout_client.errors import GatewayError
from rollout_client.transport import Transport
from rollout_crds.pod import Pod
from rollout_operator.embedded import EmbeddedCluster
from rollout_operator.node.environment import node_environment
from rollout_operator.node.errors import NodeError
from rollout_operator.node.kubelet import Kubelet
from rollout_operator.node.logs import prune, rotate
from rollout_operator.node.paths import NodePaths
from rollout_operator.node.process import ProcessTable, Program
from rollout_operator.node.runner import PodRunner

log = logging.getLogger(__name__)

PODS_GRACE_SECONDS = 8.0
OPERATOR_GRACE_SECONDS = 2.0
GATEWAY_GRACE_SECONDS = 4.0
_READY_POLL_SECONDS = 0.1
_MOST_RESTARTS = 2
_HOUSEKEEPING_SECONDS = 10.0


@dataclass(frozen=True)
class NodeSettings:
    """What to run on which state directory."""

    paths: NodePaths
    gateway: tuple[str, ...]
    """Command of the gateway."""
    operator: tuple[str, ...] | None
    """Command of the operator; None for a node without one."""


async def run_node(settings: NodeSettings, inherited: Mapping[str, str]) -> None:
    """Run a node until it is cancelled, then stop everything in order."""
    paths, table = settings.paths, ProcessTable()
    shutil.rmtree(paths.scratch, ignore_errors=True)
    env = node_environment(inherited, paths, paths.gateway_url)
    gateway = _static_pod("gateway", settings.gateway, env, paths, table)
    operator = None
    if settings.operator is not None:
        operator = _static_pod("operator", settings.operator, env, paths, table)
    statics = [gateway] if operator is None else [gateway, operator]
    async with Transport(paths.gateway_url) as transport:
        kubelet = Kubelet(EmbeddedCluster(transport, (Pod,)), table, paths, env)
        try:
            gateway.start()
            await _gateway_is_ready(transport, gateway)
            if operator:
                operator.start()
            await _serve(settings, kubelet, statics)
        finally:
            paths.ready_file.unlink(missing_ok=True)
            await kubelet.stop(PODS_GRACE_SECONDS)
            if operator:
                await operator.stop(OPERATOR_GRACE_SECONDS)
            await gateway.stop(GATEWAY_GRACE_SECONDS)
            table.close()


def _static_pod(
    name: str, argv: tuple[str, ...], env: Mapping[str, str], paths: NodePaths, table: ProcessTable
) -> PodRunner:
    program = Program(
        argv=argv,
        env={**env, "ROLLOUT_POD_NAME": name},
        cwd=paths.root,
        log=paths.log_of("default", name),
        death_signal=signal.SIGKILL,
    )
    return PodRunner(name, program, "Always", table)


async def _gateway_is_ready(transport: Transport, gateway: PodRunner) -> None:
    while not (gateway.status.reason and gateway.status.restart_count >= _MOST_RESTARTS):
        try:
            await transport.request("GET", "/readyz")
        except GatewayError:
            await asyncio.sleep(_READY_POLL_SECONDS)
        else:
            return
    msg = f"the gateway does not start: {gateway.status.message}; see {gateway.program.log}"
    raise NodeError(msg)


async def _serve(settings: NodeSettings, kubelet: Kubelet, statics: list[PodRunner]) -> None:
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(kubelet.run())
        tasks.create_task(_keep_house(settings.paths, kubelet, statics))
        await kubelet.synced.wait()
        _write_ready_file(settings)
        log.info("ready: gateway at %s", settings.paths.gateway_url)


def _write_ready_file(settings: NodeSettings) -> None:
    ready = settings.paths.ready_file
    draft = ready.with_suffix(".tmp")
    draft.write_text(json.dumps({"pid": os.getpid(), "gateway_url": settings.paths.gateway_url}))
    draft.replace(ready)


async def _keep_house(paths: NodePaths, kubelet: Kubelet, statics: list[PodRunner]) -> None:
    while True:
        in_use = kubelet.logs_in_use() | {runner.program.log for runner in statics}
        for path in in_use:
            rotate(path)
        prune(paths.logs, in_use | {paths.node_log})
        await asyncio.sleep(_HOUSEKEEPING_SECONDS)
