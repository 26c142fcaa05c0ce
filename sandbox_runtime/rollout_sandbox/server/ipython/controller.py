"""Keeps one kernel, started at the first cell, and replaces it when it is gone."""

import asyncio
from pathlib import Path
from typing import Literal

from ..programs import limited, time_limit, working_directory
from ..types import ServerConfig
from .kernel import Kernel
from .render import Rendering
from .types import IPythonRequest, IPythonResult


class IPythonController:
    """The IPython tool; cells of concurrent callers run one after another."""

    def __init__(self, config: ServerConfig, env: dict[str, str]) -> None:
        self._config = config
        self._env = env
        self._turn = asyncio.Lock()
        self._kernel: Kernel | None = None

    async def run(self, request: IPythonRequest) -> IPythonResult:
        """Execute a cell with the variables that earlier cells left."""
        async with self._turn:
            kernel = self._kernel or await self._start()
            rendering = Rendering(self._config.output_bytes)
            limit = time_limit(self._config, request.timeout_seconds)
            status: Literal["ok", "error", "timed_out", "died"]
            try:
                finished = await kernel.execute(request.code, limit, rendering.add)
                status = "timed_out" if not finished else "error" if rendering.error_name else "ok"
            except ChildProcessError as error:
                status = "timed_out" if "interrupt" in str(error) else "died"
                self._kernel = None
                await kernel.close()
            return IPythonResult(
                status=status,
                output=rendering.output.text(),
                error_name=rendering.error_name,
                images=rendering.images,
                cut_bytes=rendering.output.cut_bytes,
                kernel_restarted=self._kernel is None,
            )

    async def restart(self) -> None:
        """Throw the kernel away; the next cell starts a new one."""
        async with self._turn:
            if self._kernel is not None:
                kernel, self._kernel = self._kernel, None
                await kernel.close()

    async def _start(self) -> Kernel:
        self._kernel = await Kernel.start(
            lambda argv: limited(self._config, argv),
            working_directory(self._config),
            self._env,
            Path(self._config.run_dir),
        )
        return self._kernel
