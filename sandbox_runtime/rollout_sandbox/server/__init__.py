"""The server inside a sandbox: tools behind a Unix socket that the host opened for it.

It is process 1 of the sandbox and inherits the listening socket, so nothing in the sandbox can
reach, replace or kill it. This package imports nothing else of ours: it is carried alone.
"""
