"""Sandboxes: backends, forks, and the server with its tools inside."""
