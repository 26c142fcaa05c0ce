"""Keeps one persistent shell and replaces it when a command ends it."""

import asyncio
from pathlib import Path

from ..output import OutputBuffer
from ..programs import find_bash, limited, tool_environment, working_directory
from ..types import ServerConfig
from .shell import Shell
from .types import BashRequest, BashResult


class BashController:
    """The bash tool; commands of concurrent callers run one after another."""

    def __init__(self, config: ServerConfig, own_env: dict[str, str]) -> None:
        self._config = config
        self._env = tool_environment(own_env, config.env)
        self._turn = asyncio.Lock()
        self._shell: Shell | None = None

    async def run(self, request: BashRequest) -> BashResult:
        """Run a command in the shell as earlier commands left it."""
        async with self._turn:
            shell = self._shell or self._start()
            output = OutputBuffer(self._config.output_bytes)
            limit = min(request.timeout_seconds or float("inf"), self._config.action_seconds)
            done = await shell.run(request.command, limit, output)
            exit_code = done.exit_code
            if not done.shell_alive:
                self._shell = None
                status = await shell.close()
                exit_code = None if done.timed_out else status
            return BashResult(
                output=output.text(),
                exit_code=exit_code,
                timed_out=done.timed_out,
                cut_bytes=output.cut_bytes,
                shell_restarted=not done.shell_alive,
            )

    async def restart(self) -> None:
        """Throw the shell away; the next command starts a new one."""
        async with self._turn:
            if self._shell is not None:
                shell, self._shell = self._shell, None
                await shell.close()

    def _start(self) -> Shell:
        argv = limited(self._config, [find_bash(self._env)])
        cwd = working_directory(self._config)
        self._shell = Shell(argv, cwd, self._env, Path(self._config.run_dir))
        return self._shell
