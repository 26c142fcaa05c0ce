"""Starts sandboxes on one node, at a bounded rate, and leaves nothing of them behind.

Example::

    async with SandboxManager(root, owner="worker-1") as manager:
        async with manager.start(SandboxSpec(image="/images/python.sif")) as sandbox:
            await sandbox.command("pip install ./wheels/*.whl", timeout_seconds=300)
            layer = await sandbox.commit()
        async with manager.start(SandboxSpec(image=..., layers=(layer,))) as fork:
            print((await fork.bash("ls")).output)
"""

import asyncio
import itertools
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from types import TracebackType

from .client import SandboxClient
from .errors import SandboxDied, SandboxUnavailable, StartFailed
from .eviction import Lease, evict
from .images import ImageCache
from .instance import Inherited, Instance
from .layers import LayerStore
from .owner import Owner, claim, sweep
from .paths import cache_root
from .ports import RUN_MOUNT, RUNTIME_MOUNT, Entry, Place, SandboxBackend, SandboxSpec
from .probe import apptainer_program, choose, make_backend, probe
from .runtime import ensure_runtime
from .sandbox import Sandbox
from .server.messages import encode
from .server.types import ServerConfig
from .trees import remove_tree

_START_SECONDS = 60.0
_DISK_SECONDS = 1.0
# What reaches a backend's program from the worker's environment; nothing of it enters the sandbox.
_HOST_ENV = ("PATH", "HOME", "USER", "TMPDIR", "XDG_RUNTIME_DIR")


class SandboxManager:
    """All sandboxes of one worker. Use as an async context manager.

    Args:
        root: directory on a local disk of this node; shared by its workers.
        owner: name of this worker, unique among the live workers that share `root`.
        blobs: directory of committed layers, which may be shared by nodes; default below `root`.
        backend: `apptainer` or `bubblewrap`; default the first that works here.
        concurrent_starts: how many sandboxes may be starting at once; default one per core.
        cache_bytes: what the node may keep of converted images, and as much of unpacked layers;
            what no sandbox uses is removed when a manager starts, longest unused first.
    """

    def __init__(
        self,
        root: Path,
        *,
        owner: str,
        blobs: Path | None = None,
        backend: str | None = None,
        concurrent_starts: int | None = None,
        cache_bytes: int = 64 << 30,
    ) -> None:
        self._root = root
        self._owner_name = owner
        self._wanted_backend = backend
        self._starts = asyncio.Semaphore(concurrent_starts or os.cpu_count() or 1)
        self._numbers = itertools.count()
        self._layers = LayerStore(blobs or root / "blobs", root / "layers")
        self._images = ImageCache(root / "images", apptainer_program())
        self._running: set[Sandbox] = set()
        self._cache_bytes = cache_bytes
        self._lease = Lease()
        self._owner: Owner | None = None
        self._backend: SandboxBackend | None = None
        self._runtime: Path | None = None
        self._watching: asyncio.Task[None] | None = None

    async def __aenter__(self) -> "SandboxManager":
        """Claim the owner's directory, remove what dead owners left, make the runtime.

        Raises:
            SandboxUnavailable: no backend works here, or a live worker has the same name.
        """
        await asyncio.to_thread(self._prepare)
        self._watching = asyncio.create_task(self._watch_disks())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop all sandboxes that still run and give the owner's name back."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)
        await asyncio.gather(*(sandbox.stop() for sandbox in self._running))
        self._running.clear()
        if self._owner is not None:
            owner, self._owner = self._owner, None
            await asyncio.to_thread(owner.release)
        self._lease.release()

    @property
    def backend(self) -> str:
        """Name of the backend in use."""
        return self._entered().name

    @property
    def root(self) -> Path:
        """The directory that the node's workers share."""
        return self._root

    @property
    def layers(self) -> LayerStore:
        """The store that committed layers go to and come from."""
        return self._layers

    @asynccontextmanager
    async def start(self, spec: SandboxSpec) -> AsyncIterator[Sandbox]:
        """Start a sandbox; it is stopped when the block is left, however that happens.

        Raises:
            ImageNotFound: the spec's image is not here.
            LayerNotFound: one of the spec's layers is not here.
            StartFailed: the sandbox did not come up; carries its last words.
        """
        sandbox = await self.open(spec)
        try:
            yield sandbox
        finally:
            await self.close(sandbox)

    async def open(self, spec: SandboxSpec) -> Sandbox:
        """Start a sandbox that the caller must `close`; raises as `start` does."""
        async with self._starts:
            place, lease = self._new_place(), Lease()
            try:
                sandbox = await self._open(spec, place, lease)
            except BaseException:
                lease.release()
                with suppress(OSError):
                    await asyncio.shield(asyncio.to_thread(remove_tree, place.root))
                raise
        self._running.add(sandbox)
        return sandbox

    async def close(self, sandbox: Sandbox) -> None:
        """Stop a sandbox and forget it."""
        self._running.discard(sandbox)
        await sandbox.stop()

    async def _open(self, spec: SandboxSpec, place: Place, lease: Lease) -> Sandbox:
        entry = await asyncio.to_thread(self._prepare_entry, spec, place, lease)
        with closing(Inherited(place.socket)) as inherited:
            launch = self._entered().launch(entry, server_command(spec, inherited))
            instance = await Instance.spawn(launch, place, inherited)
        client = SandboxClient(place.socket)
        try:
            await _ready(instance, client)
            instance.record()
        except BaseException:
            client.close()
            await asyncio.shield(instance.kill())
            raise
        return Sandbox(instance, client, spec.limits, self._layers, lease)

    async def _watch_disks(self) -> None:
        """Look at all disks in turn, resting ten times as long as that takes."""
        clock = asyncio.get_running_loop().time
        while True:
            begun = clock()
            for sandbox in [*self._running]:
                await sandbox.check_disk()
            await asyncio.sleep(max(_DISK_SECONDS, 10 * (clock() - begun)))

    def _prepare(self) -> None:
        self._root.mkdir(parents=True, exist_ok=True)
        name = choose(probe(self._root), self._wanted_backend)
        self._backend = make_backend(name, self._root)
        self._runtime = ensure_runtime(cache_root(), self._lease)
        for cache in ("images", "layers"):
            evict(self._root / cache, self._cache_bytes)
        owners = self._root / "owners"
        self._owner = claim(owners, self._owner_name)
        sweep(owners)

    def _prepare_entry(self, spec: SandboxSpec, place: Place, lease: Lease) -> Entry:
        image = self._images.resolve(spec.image, self._entered(), lease)
        layers = tuple(self._layers.materialise(digest, lease) for digest in spec.layers)
        place.create()
        assert self._runtime is not None  # noqa: S101 - set with the backend
        env = {name: os.environ[name] for name in _HOST_ENV if name in os.environ}
        return Entry(image, layers, place, self._runtime, env)

    def _entered(self) -> SandboxBackend:
        if self._backend is None or self._owner is None:
            message = "use the sandbox manager inside `async with`"
            raise SandboxUnavailable(message)
        return self._backend

    def _new_place(self) -> Place:
        self._entered()
        assert self._owner is not None  # noqa: S101 - checked by _entered
        return Place(self._owner.directory / f"s{next(self._numbers)}")


def server_command(spec: SandboxSpec, inherited: Inherited) -> list[str]:
    """Return the command line of the in-sandbox server."""
    limits = spec.limits
    config = ServerConfig(
        socket_fd=inherited.listener.fileno(),
        lifeline_fd=inherited.lifeline_read,
        workdir=spec.workdir,
        run_dir=RUN_MOUNT,
        env=dict(spec.env),
        action_seconds=limits.action_seconds,
        output_bytes=limits.output_bytes,
        transfer_bytes=limits.transfer_bytes,
        memory_bytes=limits.memory_bytes,
        processes=limits.processes,
        open_files=limits.open_files,
        disk_bytes=limits.disk_bytes,
    )
    python = [f"{RUNTIME_MOUNT}/bin/python3", "-I", "-X", "utf8"]
    return [*python, "-m", "rollout_sandbox.server", encode(config).decode()]


async def _ready(instance: Instance, client: SandboxClient) -> None:
    """Wait for the first answer; the request waits in the socket's queue until it can be read."""
    answer = asyncio.ensure_future(client.request("/v1/health", timeout_seconds=_START_SECONDS))
    ended = asyncio.ensure_future(instance.wait())
    try:
        await asyncio.wait({answer, ended}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            message = f"the sandbox ended before it was ready{instance.last_words()}"
            raise StartFailed(message)
        await answer
    except SandboxDied as error:
        message = f"{error}{instance.last_words()}"
        raise StartFailed(message) from error
    finally:
        answer.cancel()
        ended.cancel()
        await asyncio.gather(answer, ended, return_exceptions=True)
