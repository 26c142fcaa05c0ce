"""Who is at fault when something in a sandbox goes wrong.

::

    SandboxError
    ├── InfrastructureError      our side: retry elsewhere; never shown to the agent, never scored
    │   ├── SandboxUnavailable   this node can't run sandboxes, or another owner holds the name
    │   ├── ImageNotFound        the image is not where the spec says
    │   ├── LayerNotFound        neither the layer cache nor the blob store has the layer
    │   ├── StartFailed          the sandbox did not come up
    │   └── SandboxDied          it came up and went away, or was stopped, while in use
    ├── LimitExceeded            the agent used more than the sandbox may have, which was ended
    └── ToolError                an answer to the caller's request; the sandbox is fine
        ├── PathNotFound         no such file or directory in the sandbox
        ├── PathRefused          the path is not of the wanted kind, or may not be touched
        ├── TooLarge             content is over the limit of the request
        └── InvalidRequest       the request itself is wrong

A command that exits with a non-zero status or runs out of time is neither: it is a normal result.
"""

from .server.refusals import Code


class SandboxError(Exception):
    """Base of every error of this package."""


class InfrastructureError(SandboxError):
    """The machine, the image store or the backend failed, not the agent."""


class SandboxUnavailable(InfrastructureError):
    """Sandboxes can't be run here at all."""


class ImageNotFound(InfrastructureError):
    """The image of the spec does not exist or can't be converted."""


class LayerNotFound(InfrastructureError):
    """A layer of the spec is in neither the cache nor the blob store, or is damaged."""


class StartFailed(InfrastructureError):
    """The sandbox ended or stayed silent before it answered its first request."""


class SandboxDied(InfrastructureError):
    """The sandbox ended, or its server stopped answering, while it was in use."""


class LimitExceeded(SandboxError):
    """The sandbox was ended since the agent used more than it may; names the limit."""


class ToolError(SandboxError):
    """The request was understood and refused; the sandbox goes on working."""


class PathNotFound(ToolError):
    """No such file or directory in the sandbox."""


class PathRefused(ToolError):
    """The path is not of the wanted kind, or permission is denied."""


class TooLarge(ToolError):
    """The content is over the limit of the request."""


class InvalidRequest(ToolError):
    """The request does not fit the tool's schema."""


# The names errors have on the wire between the sandbox and the host; only these cross it.
TOOL_ERRORS: dict[str, type[ToolError]] = {
    Code.PATH_NOT_FOUND: PathNotFound,
    Code.PATH_REFUSED: PathRefused,
    Code.TOO_LARGE: TooLarge,
    Code.INVALID_REQUEST: InvalidRequest,
}
