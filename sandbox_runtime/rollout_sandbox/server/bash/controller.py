"""Keeps one persistent shell and replaces it when a command ends it."""

import threading

from ..output import OutputBuffer
from ..programs import find_bash, limited, time_limit, working_directory
from ..types import ServerConfig
from ..watches import Watches
from .shell import Shell
from .types import BashRequest, BashResult


class BashController:
    """The bash tool; commands of concurrent callers run one after another."""

    def __init__(self, config: ServerConfig, env: dict[str, str], watches: Watches) -> None:
        self._config = config
        self._env = env
        self._watches = watches
        self._turn = threading.Lock()
        self._shell: Shell | None = None

    def run(self, request: BashRequest) -> BashResult:
        """Run a command in the shell as earlier commands left it."""
        with self._turn:
            background = self._take_background()
            lost = self._shell is not None and not self._shell.alive
            if lost:
                self._discard()
            shell = self._shell or self._start()
            output = OutputBuffer(self._config.output_bytes)
            limit = time_limit(self._config, request.timeout_seconds)
            done = shell.run(request.command, limit, output)
            exit_code = done.exit_code
            if done.shell_alive:
                self._watches.add(shell.fd, lambda: self._drain(shell))
            else:
                self._shell = None
                status = shell.close()
                exit_code = None if done.timed_out else status
            return BashResult(
                output=output.text(),
                exit_code=exit_code,
                timed_out=done.timed_out,
                cut_bytes=output.cut_bytes,
                shell_restarted=lost or not done.shell_alive,
                background=background,
            )

    def restart(self) -> None:
        """Throw the shell away; the next command starts a new one."""
        with self._turn:
            self._discard()

    def _discard(self) -> None:
        if self._shell is not None:
            shell, self._shell = self._shell, None
            self._watches.remove(shell.fd)
            shell.close()

    def _take_background(self) -> str:
        if self._shell is None:
            return ""
        self._watches.remove(self._shell.fd)
        return self._shell.take_background()

    def _drain(self, shell: Shell) -> None:
        """Between commands, take what background jobs print, so that none waits for a reader."""
        if self._turn.acquire(blocking=False):
            try:
                if shell is self._shell and not shell.drain():
                    self._watches.remove(shell.fd)
            finally:
                self._turn.release()

    def _start(self) -> Shell:
        argv = limited(self._config, [find_bash(self._env)])
        self._shell = Shell(
            argv,
            working_directory(self._config),
            self._env,
            self._config.run_dir,
            self._config.output_bytes,
        )
        return self._shell
