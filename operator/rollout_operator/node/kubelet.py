"""Makes the processes of this machine those that the pods bound to it ask for."""

import asyncio
import logging
import signal
from collections.abc import Mapping
from pathlib import Path

from rollout_crds.pod import Container, Pod
from rollout_operator.errors import Missing, OperatorError, Refused, Unavailable
from rollout_operator.node.environment import invocation
from rollout_operator.node.paths import NodePaths
from rollout_operator.node.process import ProcessTable, Program
from rollout_operator.node.runner import PodRunner
from rollout_operator.ports import Batch, Cluster
from rollout_operator.sites import LOCAL_NODE, SOCKET_VARIABLE

log = logging.getLogger(__name__)

_RETRY_SECONDS = 0.5
_Key = tuple[str, str]


class Kubelet:
    """Runs the pods bound to this node and reports how they are.

    Args:
        cluster: Where the pods are declared.
        table: Starts and reaps processes.
        paths: The state directory.
        env: Environment of every pod.
    """

    def __init__(
        self,
        cluster: Cluster,
        table: ProcessTable,
        paths: NodePaths,
        env: Mapping[str, str],
    ) -> None:
        self._cluster = cluster
        self._table = table
        self._paths = paths
        self._env = env
        self._pods: dict[_Key, Pod] = {}
        self._runners: dict[str, PodRunner] = {}
        self._stopping: dict[_Key, asyncio.Task[None]] = {}
        self._dirty: set[_Key] = set()
        self._changed = asyncio.Event()
        self.synced = asyncio.Event()
        """Set once the pods are known."""

    async def run(self) -> None:
        """Follow the pods until cancelled; their processes go on running."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._watch())
            tasks.create_task(self._report())

    def logs_in_use(self) -> set[Path]:
        """Logs of the pods that exist."""
        return {runner.program.log for runner in self._runners.values()}

    async def stop(self, grace_seconds: float) -> None:
        """Stop all pods at once, each with its own grace period but at most this one."""
        for key, pod in list(self._pods.items()):
            self._remove(key, pod, grace_seconds)
        await asyncio.gather(*self._stopping.values())

    async def _watch(self) -> None:
        while True:
            try:
                async for batch in self._cluster.watch():
                    self._take(batch)
                    self.synced.set()
            except Unavailable as error:
                log.debug("waiting for the gateway: %s", error)
            except (OperatorError, ValueError):
                log.exception("the gateway's answer about pods is not usable")
            await asyncio.sleep(_RETRY_SECONDS)

    def _take(self, batch: Batch) -> None:
        changed = {(c.namespace, c.name): c.object for c in batch.changed if c.kind == "Pod"}
        gone = set(self._pods) - set(changed) if batch.complete else set()
        for key in gone:
            self._update(key, None)
        for key, pod in changed.items():
            self._update(key, pod if isinstance(pod, Pod) and _is_ours(pod) else None)

    def _update(self, key: _Key, pod: Pod | None) -> None:
        old = self._pods.get(key)
        if old is not None and (pod is None or pod.metadata.uid != old.metadata.uid):
            self._remove(key, old)
        if pod is not None:
            self._pods[key] = pod
            if pod.metadata.uid not in self._runners and not _has_ended(pod):
                self._start(key, pod)

    def _start(self, key: _Key, pod: Pod) -> None:
        name = pod.metadata.name
        container = next(iter(pod.spec.containers), Container(name="missing"))
        call = invocation(container, name, self._env)
        program = Program(
            argv=call.argv,
            env=call.env,
            cwd=self._paths.work,
            log=self._paths.log_of(*key),
            death_signal=signal.SIGTERM,
            socket=self._socket_of(call.env),
            scratch=self._paths.scratch_of(pod.metadata.uid),
        )
        runner = PodRunner(
            name, program, pod.spec.restart_policy, self._table, lambda: self._mark(key)
        )
        self._runners[pod.metadata.uid] = runner
        runner.start(after=self._stopping.get(key))

    def _socket_of(self, env: Mapping[str, str]) -> Path | None:
        """The pod's socket, if it is where sockets of this node are."""
        path = Path(env.get(SOCKET_VARIABLE, ""))
        return path if path.parent == self._paths.run else None

    def _remove(self, key: _Key, pod: Pod, limit_seconds: float = float("inf")) -> None:
        del self._pods[key]
        self._dirty.discard(key)
        runner = self._runners.pop(pod.metadata.uid, None)
        if runner is None:
            return
        grace = min(pod.spec.termination_grace_period_seconds, limit_seconds)
        stopping = asyncio.create_task(self._stop_after(self._stopping.get(key), runner, grace))
        self._stopping[key] = stopping
        stopping.add_done_callback(lambda task: self._stopped(key, task))

    async def _stop_after(
        self, earlier: asyncio.Task[None] | None, runner: PodRunner, grace_seconds: float
    ) -> None:
        if earlier is not None:
            await earlier
        await runner.stop(grace_seconds)

    def _stopped(self, key: _Key, task: asyncio.Task[None]) -> None:
        if self._stopping.get(key) is task:
            del self._stopping[key]

    def _mark(self, key: _Key) -> None:
        self._dirty.add(key)
        self._changed.set()

    async def _report(self) -> None:
        """Write the status of pods that have changed, again and again until it is taken."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            for key in list(self._dirty):
                if not await self._write_status(key):
                    self._changed.set()
                    await asyncio.sleep(_RETRY_SECONDS)
                    break

    async def _write_status(self, key: _Key) -> bool:
        pod = self._pods.get(key)
        runner = self._runners.get(pod.metadata.uid) if pod is not None else None
        self._dirty.discard(key)
        if pod is None or runner is None:
            return True
        try:
            await self._cluster.write_status(pod, runner.status)
        except Unavailable:
            self._dirty.add(key)
            return False
        except (Missing, Refused) as error:
            log.debug("%s: status not taken: %s", runner.name, error)
        return True


def _is_ours(pod: Pod) -> bool:
    return pod.spec.node_name == LOCAL_NODE and pod.metadata.deletion_timestamp is None


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in {"Succeeded", "Failed"}
