"""Keeps a node running for the time of a run, whoever started it and however often it dies."""

import asyncio
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress

from rollout_client.cli.node import LocalNode

_CHECK_SECONDS = 0.5


class NodeKeeper:
    """Uses the node that runs, and starts one whenever there is none.

    Args:
        node: The node of the state directory.
        note: Tells people what is done.
    """

    def __init__(self, node: LocalNode, note: Callable[[str], None]) -> None:
        self._node = node
        self._note = note
        self._own: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def owns_node(self) -> bool:
        """Whether the node was started here and is to end with the run."""
        return self._own is not None

    async def start(self) -> None:
        """Return when a node is ready; from then on it is kept running.

        Raises:
            CliError: It cannot be started.
        """
        while (pid := self._node.running_pid()) is not None:
            if self._node.ready_pid() == pid:
                break
            await asyncio.sleep(_CHECK_SECONDS)  # it starts, or it is about to end
        else:
            self._note(f"starting gateway, operator and node on {self._node.state_dir}")
            self._own = self._node.start(tied=True)
            await asyncio.to_thread(self._node.await_ready, self._own.pid)
        self._task = asyncio.create_task(self._keep())

    async def stop(self) -> None:
        """End the node if it was started here."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._own is not None:
            self._note("stopping what was started for this run")
            await asyncio.to_thread(self._node.stop, self._own.pid)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            alive = self._own is not None and self._own.poll() is None
            if alive or self._node.running_pid() is not None:
                continue
            self._note(f"the node {self._end()}; starting it again")
            self._own = self._node.start(tied=True)

    def _end(self) -> str:
        code = self._own.returncode if self._own is not None else None
        if code is None:
            return "was stopped"
        return f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended ({code})"
