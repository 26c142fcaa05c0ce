"""Runs a script as a child of process 1 and learns its exit status from the kernel.

Nothing the script prints can change the reported status, so set-up and grading use this and not the
persistent shell. When its time is over, or it has ended, all that it left behind in its process
group or below is killed.
"""

import asyncio
from asyncio.subprocess import DEVNULL, STDOUT, Process

from ..output import OutputBuffer
from ..processes import group_and_descendants, kill_all, process_table
from ..programs import find_bash, limited, tool_environment, working_directory
from ..refusals import Code, Refusal
from ..types import ServerConfig
from .pipe import Pipe
from .types import CommandRequest, CommandResult


class CommandController:
    """The command tool; any number of commands may run at once."""

    def __init__(self, config: ServerConfig, own_env: dict[str, str]) -> None:
        self._config = config
        self._env = tool_environment(own_env, config.env)

    async def run(self, request: CommandRequest) -> CommandResult:
        """Run a script to its end or to its time-out."""
        output = OutputBuffer(self._config.output_bytes)
        limit = min(request.timeout_seconds or float("inf"), self._config.action_seconds)
        with Pipe(output) as pipe:
            process = await self._start(request, pipe.write_end)
            pipe.close_write_end()
            timed_out = False
            try:
                async with asyncio.timeout(limit):
                    await process.wait()
            except TimeoutError:
                timed_out = True
            kill_all(group_and_descendants(process_table(), process.pid))
            status = await process.wait()
        return CommandResult(
            output=output.text(),
            exit_code=128 - status if status < 0 else status,
            timed_out=timed_out,
            cut_bytes=output.cut_bytes,
        )

    async def _start(self, request: CommandRequest, output: int) -> Process:
        env = {**self._env, **request.env}
        argv = limited(self._config, [find_bash(env), "-c", request.script])
        try:
            return await asyncio.create_subprocess_exec(
                *argv,
                cwd=request.cwd or working_directory(self._config),
                env=env,
                stdin=DEVNULL,
                stdout=output,
                stderr=STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Refusal(Code.INVALID_REQUEST, f"the command can't be started: {error}") from error
