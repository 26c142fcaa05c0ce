"""Sandboxes of `rollout_sandbox` behind the port of the stages, with its errors classified.

Importing the runtime and probing the node waits until the first sandbox is wanted, so that an idle
worker stays small.
"""

import asyncio
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from rollout_crds.reasons import FailureReason
from rollout_crds.result import Boundary
from rollout_crds.rolloutjob import Sandbox as SandboxSettings
from rollout_crds.wire import BlobRef, PreparedEnvironment
from rollout_sandbox import errors
from rollout_sandbox.manager import SandboxManager
from rollout_sandbox.ports import RUNTIME_MOUNT, Limits, SandboxSpec
from rollout_sandbox.sandbox import Sandbox as RuntimeSandbox
from rollout_stages.blobs import FsspecBlobStore
from rollout_stages.errors import StageError, Verdict, Verdicts, boundary
from rollout_stages.names import image_reference
from rollout_stages.ports import CommandResult, Sandbox

_DIED = Verdict(FailureReason.SANDBOX_DIED, retryable=True)
_UNAVAILABLE = Verdict(FailureReason.SANDBOX_UNAVAILABLE, retryable=True)
_USE: Verdicts = {
    errors.LimitExceeded: Verdict(
        FailureReason.SANDBOX_LIMIT_EXCEEDED, retryable=False, policy_error=True
    ),
    errors.SandboxDied: _DIED,
    errors.InfrastructureError: _UNAVAILABLE,
}
_START: Verdicts = {
    FileNotFoundError: Verdict(FailureReason.IMAGE_NOT_FOUND, retryable=False),
    errors.ImageNotFound: Verdict(FailureReason.IMAGE_NOT_FOUND, retryable=False),
    errors.LayerNotFound: Verdict(FailureReason.BLOB_UNAVAILABLE, retryable=True),
    errors.InfrastructureError: _UNAVAILABLE,
}
_TASK_FILES: Verdicts = {
    errors.ToolError: Verdict(FailureReason.SETUP_FAILED, retryable=False),
    **_USE,
}
_ARTIFACT: Verdicts = {
    errors.ToolError: Verdict(FailureReason.ARTIFACT_UNUSABLE, retryable=False, policy_error=True),
    **_USE,
}
# Runs inside the sandbox with the runtime's own Python: images may lack `find` and `rm`.
_CLEAR = """\
import pathlib, shutil, sys
for path in map(pathlib.Path, sys.argv[1:]):
    if path.is_dir() and not path.is_symlink():
        for entry in path.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
    else:
        path.unlink(missing_ok=True)
"""
_HOUSEKEEPING_SECONDS = 120.0


class NodeSandboxes:
    """The sandboxes of one worker on this node.

    Args:
        root: Directory on a local disk, shared with the other workers of the node.
        owner: Unique among live workers.
        blobs: Where layers come from and go to.
        images: Directory of images that manifests call by plain names.
    """

    def __init__(self, root: Path, owner: str, blobs: FsspecBlobStore, images: Path) -> None:
        self._root = root
        self._owner = owner
        self._blobs = blobs
        self._images = images
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self._manager: SandboxManager | None = None

    def check_image(self, image: str) -> None:
        """See `ports.Sandboxes`."""
        try:
            image_reference(image, self._images)
        except FileNotFoundError as error:
            raise StageError(
                Boundary.SANDBOX, FailureReason.IMAGE_NOT_FOUND, str(error), retryable=False
            ) from error

    @asynccontextmanager
    async def fork(
        self,
        environment: PreparedEnvironment,
        settings: SandboxSettings,
        action_seconds: float | None = None,
    ) -> AsyncIterator[Sandbox]:
        """See `ports.Sandboxes`."""
        async with AsyncExitStack() as stack:
            async with boundary(Boundary.SANDBOX, _START, "start the sandbox"):
                manager = await self._entered()
                spec = await self._spec(manager, environment, settings, action_seconds)
                sandbox = await stack.enter_async_context(manager.start(spec))
            yield _NodeSandbox(sandbox, manager, self._blobs)

    async def aclose(self) -> None:
        """Stop all sandboxes that still run."""
        await self._stack.aclose()

    async def _entered(self) -> SandboxManager:
        async with self._starting:
            if self._manager is None:
                local = self._blobs.local_directory() or self._root / "blobs"
                manager = SandboxManager(self._root, owner=self._owner, blobs=local)
                self._manager = await self._stack.enter_async_context(manager)
            return self._manager

    async def _spec(
        self,
        manager: SandboxManager,
        environment: PreparedEnvironment,
        settings: SandboxSettings,
        action_seconds: float | None,
    ) -> SandboxSpec:
        layers: tuple[str, ...] = ()
        if environment.layer is not None:
            layers = (f"sha256:{environment.layer.sha256}",)
            await self._blobs.fetch(environment.layer, manager.layers.blob(layers[0]))
        return SandboxSpec(
            image=image_reference(environment.image, self._images),
            layers=layers,
            env={variable.name: variable.value for variable in settings.env},
            workdir=settings.workdir,
            limits=_limits(settings, action_seconds),
            network=settings.network,
        )


def _limits(settings: SandboxSettings, action_seconds: float | None) -> Limits:
    resources = settings.resources
    return Limits(
        action_seconds=action_seconds or resources.action_timeout_seconds,
        output_bytes=resources.output_kibibytes * 1024,
        memory_bytes=resources.memory_mebibytes * 1024 * 1024,
        processes=resources.processes,
        open_files=resources.open_files,
        disk_bytes=resources.disk_mebibytes * 1024 * 1024,
    )


class _NodeSandbox:
    def __init__(
        self, sandbox: RuntimeSandbox, manager: SandboxManager, blobs: FsspecBlobStore
    ) -> None:
        self._sandbox = sandbox
        self._manager = manager
        self._blobs = blobs

    async def bash(self, command: str, timeout_seconds: float) -> CommandResult:
        async with boundary(Boundary.SANDBOX, _USE, "run a command"):
            result = await self._sandbox.bash(command, timeout_seconds=timeout_seconds)
        notice = "the shell was restarted" if result.shell_restarted else ""
        return CommandResult(result.output, result.exit_code, result.timed_out, notice)

    async def ipython(self, code: str, timeout_seconds: float) -> CommandResult:
        async with boundary(Boundary.SANDBOX, _USE, "run a cell"):
            result = await self._sandbox.ipython(code, timeout_seconds=timeout_seconds)
        notice = "the kernel was restarted: variables are lost" if result.kernel_restarted else ""
        return CommandResult(result.output, None, result.status == "timed_out", notice)

    async def command(self, script: str, timeout_seconds: float) -> CommandResult:
        async with boundary(Boundary.SANDBOX, _USE, "run a command"):
            result = await self._sandbox.command(script, timeout_seconds=timeout_seconds)
        return CommandResult(result.output, result.exit_code, result.timed_out)

    async def write(self, path: str, content: bytes, mode: int) -> None:
        async with boundary(Boundary.TASK, _TASK_FILES, f"write {path}"):
            await self._sandbox.write(path, content, mode=mode)

    async def export(self, paths: Sequence[str]) -> bytes:
        async with boundary(Boundary.SANDBOX, _ARTIFACT, "carry the artefact over"):
            existing = await self._existing(paths)
            return await self._sandbox.export(existing) if existing else b""

    async def restore(self, archive: bytes, paths: Sequence[str]) -> None:
        async with boundary(Boundary.SANDBOX, _ARTIFACT, "carry the artefact over"):
            words = shlex.join([f"{RUNTIME_MOUNT}/bin/python3", "-I", "-c", _CLEAR, *paths])
            cleared = await self._sandbox.command(words, timeout_seconds=_HOUSEKEEPING_SECONDS)
            if cleared.exit_code != 0:
                msg = f"cannot clear {', '.join(paths)}: {cleared.output[-500:]}"
                raise errors.SandboxUnavailable(msg)
            if archive:
                await self._sandbox.import_(archive, paths)

    async def commit(self) -> BlobRef:
        async with boundary(Boundary.SANDBOX, _USE, "store the prepared environment"):
            digest = await self._sandbox.commit()
        return await self._blobs.put_file(self._manager.layers.blob(digest))

    async def _existing(self, paths: Sequence[str]) -> list[str]:
        tests = (
            f"if [ -e {q} ] || [ -L {q} ]; then echo {index}; fi"
            for index, q in enumerate(map(shlex.quote, paths))
        )
        listed = await self._sandbox.command(
            "\n".join(tests), timeout_seconds=_HOUSEKEEPING_SECONDS
        )
        return [paths[int(index)] for index in listed.output.split()]
