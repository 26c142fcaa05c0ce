"""What a component of the set-up is, and the session that it runs in."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hack.setup.shell import Shell
from hack.setup.store import Store

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Session:
    """What one component is given: the cache, a way to run programs and a way to tell."""

    store: Store
    shell: Shell
    tell: Callable[[str], None]

    def provide(self, name: str, what: str, build: Callable[[Path], None]) -> Path:
        """Return the entry `name`, built by `build` in a folder of its own if it is not there.

        Raises:
            SetupError: The build failed; nothing of it stays.
        """
        final = self.store.entry(name)
        with self.store.lock(name, lambda: self.tell("waiting for another set-up")):
            if final.exists():
                self.tell(f"{what}: already there ({final})")
                return final
            self.tell(f"{what}: installing into {final}")
            started = time.monotonic()
            with self.store.staged(name) as folder:
                build(folder)
        self.tell(f"{what}: ready in {time.monotonic() - started:.0f} s")
        return final


@dataclass(frozen=True)
class Component:
    """One thing that can be set up; `needs` names what must be there before.

    What is not `default` is set up only when it is asked for by name.
    """

    name: str
    summary: str
    install: Callable[[Session], None]
    needs: tuple[str, ...] = field(default=())
    default: bool = True
