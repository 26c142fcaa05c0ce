"""What can keep the node from working; each message is one line for people."""


class NodeError(Exception):
    """The node cannot start."""


class StartError(Exception):
    """A program cannot be started."""
