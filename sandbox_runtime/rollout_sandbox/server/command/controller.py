"""Runs a script as a child of process 1 and learns its exit status from the kernel.

Nothing the script prints can change the reported status, so set-up and grading use this and not the
persistent shell. When its time is over, or it has ended, all that it left behind in its process
group or below is killed.
"""

from subprocess import DEVNULL, STDOUT, Popen

from ..output import OutputBuffer
from ..processes import group_and_descendants, kill_all, process_table
from ..programs import find_bash, limited, time_limit, working_directory
from ..refusals import Code, Refusal
from ..types import ServerConfig
from .pump import Pump
from .types import CommandRequest, CommandResult


class CommandController:
    """The command tool; any number of commands may run at once."""

    def __init__(self, config: ServerConfig, env: dict[str, str]) -> None:
        self._config = config
        self._env = env

    def run(self, request: CommandRequest) -> CommandResult:
        """Run a script to its end or to its time-out."""
        output = OutputBuffer(self._config.output_bytes)
        with Pump(output) as pump:
            process = self._start(request, pump.write_end)
            limit = time_limit(self._config, request.timeout_seconds)
            timed_out = not pump.until_ended(process, limit)
            kill_all(group_and_descendants(process_table(), process.pid))
            status = process.wait()
        return CommandResult(
            output=output.text(),
            exit_code=128 - status if status < 0 else status,
            timed_out=timed_out,
            cut_bytes=output.cut_bytes,
        )

    def _start(self, request: CommandRequest, output: int) -> "Popen[bytes]":
        env = {**self._env, **request.env}
        argv = limited(self._config, [find_bash(env), "-c", request.script])
        try:
            return Popen(
                argv,
                cwd=request.cwd or working_directory(self._config),
                env=env,
                stdin=DEVNULL,
                stdout=output,
                stderr=STDOUT,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Refusal(Code.INVALID_REQUEST, f"the command can't be started: {error}") from error
