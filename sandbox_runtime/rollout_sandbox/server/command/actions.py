"""What the command tool answers to."""

from ..app import Action, Context
from .controller import CommandController
from .types import CommandRequest


def actions(context: Context) -> dict[str, Action]:
    """Return the actions by name."""
    controller = CommandController(context.config, context.env)
    return {"run": Action(CommandRequest, lambda request, _: controller.run(request))}
