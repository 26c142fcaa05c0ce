"""The one place that knows jupyter_client: a kernel over Unix sockets inside the sandbox."""

import asyncio
import secrets
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jupyter_client.asynchronous.client import AsyncKernelClient
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager

OnMessage = Callable[[str, Mapping[str, Any]], None]

_READY_SECONDS = 60.0
_INTERRUPT_SECONDS = 3.0
_OPTIONS = ("--colors=NoColor", "--HistoryManager.enabled=False")


class _Manager(AsyncKernelManager):
    """Starts one given command line instead of looking kernels up by name."""

    def __init__(self, argv: list[str], connection_file: str) -> None:
        super().__init__(transport="ipc", ip=connection_file.removesuffix(".json"))
        self.connection_file = connection_file
        self._kernel_spec = KernelSpec(argv=argv, display_name="rollout", language="python")


class Kernel:
    """A running IPython kernel."""

    def __init__(self, manager: _Manager, client: AsyncKernelClient) -> None:
        self._manager = manager
        self._client = client

    @classmethod
    async def start(
        cls, wrap: Callable[[list[str]], list[str]], cwd: str, env: dict[str, str], run_dir: Path
    ) -> "Kernel":
        """Start a kernel; `wrap` may put a program in front of its command line.

        Raises:
            RuntimeError: it ended before it was ready, or was not ready in time.
        """
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", *_OPTIONS]
        manager = _Manager(wrap(argv), str(run_dir / f"{secrets.token_hex(4)}.json"))
        await manager.start_kernel(cwd=cwd, env=env)
        client = manager.client()
        client.start_channels()
        await client.wait_for_ready(timeout=_READY_SECONDS)
        return cls(manager, client)

    async def execute(self, code: str, timeout_seconds: float, on_message: OnMessage) -> bool:
        """Run a cell; return False when it had to be interrupted.

        Raises:
            ChildProcessError: the kernel ended, or did not obey the interrupt.
        """
        request = self._client.execute(code, allow_stdin=False, stop_on_error=False)
        if await self._until_idle(request, timeout_seconds, on_message):
            return True
        await self._manager.interrupt_kernel()
        if not await self._until_idle(request, _INTERRUPT_SECONDS, on_message):
            message = "the kernel did not obey the interrupt"
            raise ChildProcessError(message)
        return False

    async def close(self) -> None:
        """Kill the kernel and remove its files."""
        self._client.stop_channels()
        await self._manager.shutdown_kernel(now=True)

    async def _until_idle(self, request: str, seconds: float, on_message: OnMessage) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while (left := deadline - loop.time()) > 0:
            if not await self._client.iopub_channel.socket.poll(int(min(left, 1.0) * 1000) + 1):
                if not await self._manager.is_alive():
                    message = "the kernel ended"
                    raise ChildProcessError(message)
                continue
            message_in = await self._client.get_iopub_msg()
            if message_in["parent_header"].get("msg_id") != request:
                continue
            kind, content = message_in["msg_type"], message_in["content"]
            if kind == "status" and content["execution_state"] == "idle":
                return True
            on_message(kind, content)
        return False
