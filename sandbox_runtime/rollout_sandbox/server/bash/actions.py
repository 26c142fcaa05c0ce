"""What the bash tool answers to."""

from ..app import Action, Context
from .controller import BashController
from .types import BashRequest, BashRestart


def actions(context: Context) -> dict[str, Action]:
    """Return the actions by name."""
    controller = BashController(context.config, context.env, context.watches)
    return {
        "run": Action(BashRequest, lambda request, _: controller.run(request)),
        "restart": Action(BashRestart, lambda *_: controller.restart()),
    }
