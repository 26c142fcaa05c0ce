"""The one error of the cluster's tools, and how to wait for something with a time limit."""

import time
from collections.abc import Callable


class KubeError(RuntimeError):
    """Kubernetes is not set up, did not start or did not answer; the message has the remedy."""


def wait_until(reached: Callable[[], bool], what: str, within_s: float) -> None:
    """Look every 50 ms until something holds.

    Raises:
        KubeError: It does not after `within_s` seconds.
    """
    deadline = time.monotonic() + within_s
    while not reached():
        if time.monotonic() > deadline:
            raise KubeError(f"waited {within_s:g} s in vain for {what}")
        time.sleep(0.05)
