"""What the file tool answers to."""

from ..app import Action, Context
from .controller import FilesController
from .types import ExportRequest, ImportRequest, ListRequest, ReadRequest, WriteRequest


def actions(context: Context) -> dict[str, Action]:
    """Return the actions by name."""
    controller = FilesController(context.config)
    return {
        "read": Action(ReadRequest, lambda request, _: controller.read(request)),
        "write": Action(WriteRequest, controller.write),
        "list": Action(ListRequest, lambda request, _: controller.list_directory(request)),
        "export": Action(ExportRequest, lambda request, _: controller.export(request)),
        "import": Action(ImportRequest, controller.unpack),
    }
