"""What the IPython tool answers to. Jupyter needs an event loop: it gets a thread with one."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import TypeVar

from ..app import Action, Context
from .controller import IPythonController
from .types import IPythonRequest, IPythonRestart

T = TypeVar("T")


def actions(context: Context) -> dict[str, Action]:
    """Return the actions by name."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    controller = IPythonController(context.config, context.env)

    def wait(work: Coroutine[object, object, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    return {
        "run": Action(IPythonRequest, lambda request, _: wait(controller.run(request))),
        "restart": Action(IPythonRestart, lambda *_: wait(controller.restart())),
    }
