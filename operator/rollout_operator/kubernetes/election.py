"""One operator works at a time: the holder of a Lease that it renews.

A Lease needs no kind of its own to be installed, unlike kopf's peering, and is what people expect
to find. Time is measured by each process's own clock, from when it saw the Lease change.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from rollout_operator.errors import Conflict, Missing, OperatorError
from rollout_operator.kubernetes.api import KubernetesApi, Object

log = logging.getLogger(__name__)


class LeadershipLost(OperatorError):
    """The Lease could not be renewed in time: another operator may work now."""


@dataclass(frozen=True)
class LeaseSettings:
    """Which Lease, and how long it is held."""

    namespace: str
    identity: str
    """Of this process: one that is restarted in place may take its own Lease back at once."""
    name: str = "rollout-operator"
    duration_seconds: int = 15
    """Time after which others may take a Lease that is not renewed."""

    @property
    def renew_seconds(self) -> float:
        """Time between two renewals."""
        return self.duration_seconds / 5

    @property
    def deadline_seconds(self) -> float:
        """Time without a renewal after which the holder must stop, before others may start."""
        return self.duration_seconds * 2 / 3


class Election:
    """Takes and renews a Lease.

    Args:
        api: To the API server.
        settings: The Lease.
        monotonic: The clock.
    """

    def __init__(
        self,
        api: KubernetesApi,
        settings: LeaseSettings,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._settings, self._monotonic = api, settings, monotonic
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{settings.namespace}/leases"
        self._seen: tuple[str, float] = ("", 0.0)
        """Version of the Lease as last seen, and since when it is that."""

    async def acquire(self) -> None:
        """Wait until the Lease is ours."""
        log.info("waiting for Lease %s/%s", self._settings.namespace, self._settings.name)
        while not await self._try():  # noqa: ASYNC110 - it is another process that gives it back
            await asyncio.sleep(self._settings.renew_seconds)
        log.info("leading as %s", self._settings.identity)

    async def hold(self) -> None:
        """Renew the Lease until that fails for too long.

        Raises:
            LeadershipLost: It did.
        """
        renewed = self._monotonic()
        while self._monotonic() - renewed < self._settings.deadline_seconds:
            await asyncio.sleep(self._settings.renew_seconds)
            asked = self._monotonic()
            if await self._try():
                renewed = asked
        msg = f"Lease `{self._settings.name}` was not renewed for too long"
        raise LeadershipLost(msg)

    async def release(self) -> None:
        """Give the Lease back, so that another operator starts at once."""
        try:
            lease = await self._api.get(f"{self._path}/{self._settings.name}")
            if lease["spec"].get("holderIdentity") == self._settings.identity:
                await self._write(lease, holder="")
        except OperatorError as error:
            log.warning("the Lease was not given back and runs out by itself: %s", error)

    async def _try(self) -> bool:
        try:
            async with asyncio.timeout(self._settings.renew_seconds):
                return await self._take_or_renew()
        except (OperatorError, TimeoutError) as error:
            log.warning("Lease %s: %s", self._settings.name, str(error) or "no answer in time")
            return False

    async def _take_or_renew(self) -> bool:
        try:
            lease = await self._api.get(f"{self._path}/{self._settings.name}")
        except Missing:
            lease = {"metadata": {"name": self._settings.name}, "spec": {}}
        if not self._is_free(lease):
            return False
        try:
            await self._write(lease, holder=self._settings.identity)
        except Conflict:  # another took or renewed it in the meantime
            return False
        return True

    def _is_free(self, lease: Object) -> bool:
        holder = lease["spec"].get("holderIdentity")
        version, now = lease["metadata"].get("resourceVersion", ""), self._monotonic()
        if version != self._seen[0]:
            self._seen = (version, now)
        if not holder or holder == self._settings.identity:
            return True
        duration = lease["spec"].get("leaseDurationSeconds", self._settings.duration_seconds)
        return bool(now - self._seen[1] > duration)

    async def _write(self, lease: Object, *, holder: str) -> None:
        """The version in the Lease makes the API server refuse what is based on an old one."""
        spec, now = lease["spec"], datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        changes = spec.get("holderIdentity") != holder
        written = {
            **spec,
            "holderIdentity": holder,
            "leaseDurationSeconds": self._settings.duration_seconds,
            "renewTime": now,
            "acquireTime": now if changes else spec.get("acquireTime", now),
            "leaseTransitions": spec.get("leaseTransitions", 0) + int(changes and bool(holder)),
        }
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": lease["metadata"],
            "spec": written,
        }
        if "resourceVersion" in lease["metadata"]:
            await self._api.request("PUT", f"{self._path}/{self._settings.name}", body=body)
        else:
            await self._api.create(self._path, body)
