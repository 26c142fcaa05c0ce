"""INIT: prepare the environment of a group once, for all of its samples."""

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.task import TaskFile
from rollout_crds.wire import InitDone, Lease, PreparedEnvironment
from rollout_stages.errors import StageError
from rollout_stages.handlers.registry import Handlers, check_task
from rollout_stages.ports import Sandbox, Sandboxes
from rollout_stages.work import Work

_KEPT_OUTPUT = 1000


class InitStage:
    """Prepares environments.

    Args:
        sandboxes: Where they are prepared.
    """

    def __init__(self, sandboxes: Sandboxes) -> None:
        self._sandboxes = sandboxes
        self._handlers = Handlers()

    async def run(self, work: Work) -> InitDone:
        """Write the task's files, run its set-up commands and keep what they changed."""
        lease = work.lease
        check_task(self._handlers.find(lease.spec.handler), lease.task, lease.spec)
        bare = PreparedEnvironment(image=lease.task.environment.image or lease.spec.sandbox.image)
        self._sandboxes.check_image(bare.image)
        if not (lease.task.environment.files or lease.task.environment.setup):
            return InitDone(environment=bare)
        return InitDone(environment=await self._prepare(lease, bare))

    async def _prepare(self, lease: Lease, bare: PreparedEnvironment) -> PreparedEnvironment:
        seconds = float(lease.active_deadline_seconds)
        async with self._sandboxes.fork(bare, lease.spec.sandbox, seconds) as sandbox:
            await write_files(sandbox, lease.task.environment.files)
            for number, command in enumerate(lease.task.environment.setup):
                await _set_up(sandbox, command, number, seconds)
            return bare.model_copy(update={"layer": await sandbox.commit()})


async def write_files(sandbox: Sandbox, files: list[TaskFile]) -> None:
    """Put a task's files into a sandbox."""
    for file in files:
        await sandbox.write(file.path, file.content.encode(), file.mode)


async def _set_up(sandbox: Sandbox, command: str, number: int, seconds: float) -> None:
    result = await sandbox.command(command, seconds)
    if result.exit_code != 0 or result.timed_out:
        how = "timed out" if result.timed_out else f"exited with {result.exit_code}"
        output = result.output[-_KEPT_OUTPUT:].strip()
        raise StageError(
            Boundary.TASK,
            FailureReason.SETUP_FAILED,
            f"`environment.setup[{number}]` {how}: {command[:200]}\n{output}",
            retryable=False,
        )
