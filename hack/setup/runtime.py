"""The sandbox runtime, which is mounted into every sandbox: built by `rollout_sandbox` itself."""

from __future__ import annotations

import os

from hack.setup.component import REPOSITORY, Component, Session


def _install(session: Session) -> None:
    with session.store.lock("runtime", lambda: session.tell("waiting for another set-up")):
        session.shell.run(
            *(REPOSITORY / ".venv/bin/python", "-m", "rollout_sandbox.runtime", "build"),
            env={"ROLLOUT_CACHE": str(session.store.root), "PATH": _path(session)},
        )
    session.tell("sandbox runtime: ready")


def _path(session: Session) -> str:
    return f"{session.store.root / 'bin'}{os.pathsep}{os.environ.get('PATH', os.defpath)}"


RUNTIME = Component(
    "runtime", "the relocatable runtime of sandboxes", _install, needs=("project", "apptainer")
)
