"""`rollout-stage init|run|eval`: a stage worker process, configured by its environment."""

import asyncio
import logging
import signal
import sys
import uuid
from collections.abc import Sequence
from contextlib import AsyncExitStack

from rollout_client.worker import WorkerClient
from rollout_stages.ports import StageRunner
from rollout_stages.settings import Settings, SettingsError, from_environment
from rollout_stages.stages import LazyStage
from rollout_stages.worker import Worker, WorkerIdentity

_log = logging.getLogger("rollout_stages")
_USAGE = "usage: rollout-stage init|run|eval"
_BAD_USAGE = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a stage worker until SIGTERM or SIGINT; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 1:
        print(_USAGE, file=sys.stderr)
        return _BAD_USAGE
    try:
        settings = from_environment(arguments[0])
    except SettingsError as error:
        print(f"rollout-stage: {error}", file=sys.stderr)
        return _BAD_USAGE
    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    asyncio.run(_work(settings))
    return 0


async def _work(settings: Settings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    identity = WorkerIdentity(
        worker=settings.worker,
        incarnation=uuid.uuid4().hex,
        stage=settings.stage,
        concurrency=settings.concurrency,
        job_uid=settings.job_uid,
        pool=settings.pool,
    )
    async with AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(WorkerClient(settings.gateway_url))
        stage: StageRunner = await stack.enter_async_context(LazyStage(settings, identity))
        _log.info("%s worker %s starts", identity.stage, identity.worker)
        await Worker(gateway, stage, identity).run(stop)
        _log.info("%s worker %s stops", identity.stage, identity.worker)


if __name__ == "__main__":
    sys.exit(main())
