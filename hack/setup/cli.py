"""The command line: sets up what is asked, in order of need, independent parts side by side."""

from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter

from hack.setup.apptainer import APPTAINER
from hack.setup.component import Component, Session
from hack.setup.errors import SetupError
from hack.setup.helm import HELM
from hack.setup.images import BUSYBOX_IMAGE, PYTHON_IMAGE
from hack.setup.kubernetes import KUBERNETES, KUBERNETES_NODE
from hack.setup.models import SMOLLM2_MODEL, TINY_MODELS
from hack.setup.project import PROJECT, UV
from hack.setup.runtime import RUNTIME
from hack.setup.shell import Shell, stop_all
from hack.setup.slurm import SLURM
from hack.setup.store import Store, default_root
from hack.setup.system import ISOLATION, SYSTEM
from hack.setup.vllm import VLLM

COMPONENTS = {
    component.name: component
    for component in (
        SYSTEM,
        ISOLATION,
        UV,
        PROJECT,
        APPTAINER,
        BUSYBOX_IMAGE,
        PYTHON_IMAGE,
        VLLM,
        TINY_MODELS,
        SMOLLM2_MODEL,
        RUNTIME,
        KUBERNETES,
        KUBERNETES_NODE,
        HELM,
        SLURM,
    )
}
_REMINDER_S = 20.0


def by_default() -> list[str]:
    """Return the components that are set up when none is named."""
    return [name for name, component in COMPONENTS.items() if component.default]


def with_needs(names: Iterable[str]) -> list[str]:
    """Return the components that `names` need, themselves included, needs first."""
    graph: dict[str, tuple[str, ...]] = {}
    pending = list(names)
    while pending:
        name = pending.pop()
        if name not in graph:
            graph[name] = COMPONENTS[name].needs
            pending.extend(graph[name])
    return list(TopologicalSorter(graph).static_order())


class Progress:
    """Prints one line per event, with the seconds since the start."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def tell(self, name: str, message: str) -> None:
        """Print what happened to the component `name`."""
        seconds = time.monotonic() - self._started
        print(f"[{seconds:4.0f} s] {name}: {message}", flush=True)


def set_up(names: Sequence[str], store: Store, progress: Progress) -> bool:
    """Set up `names` and all that they need; return whether everything is there.

    A component that fails takes along only those that need it.
    """
    sorter = TopologicalSorter({name: COMPONENTS[name].needs for name in with_needs(names)})
    sorter.prepare()
    failed: set[str] = set()
    with ThreadPoolExecutor(max_workers=len(COMPONENTS)) as pool:
        running: dict[Future[None], str] = {}
        while sorter.is_active():
            for name in sorter.get_ready():
                running[pool.submit(_run, COMPONENTS[name], failed, store, progress)] = name
            done, _ = wait(running, timeout=_REMINDER_S, return_when=FIRST_COMPLETED)
            if not done:
                progress.tell("setup", f"still busy with {', '.join(running.values())}")
            for future in done:
                name = running.pop(future)
                if not _succeeded(name, future, progress):
                    failed.add(name)
                sorter.done(name)
    return not failed


def _run(component: Component, failed: set[str], store: Store, progress: Progress) -> None:
    if lacking := failed.intersection(component.needs):
        raise SetupError(f"left out, since it needs {', '.join(sorted(lacking))}")
    shell = Shell(store.root / "logs" / f"{component.name}.log")
    component.install(Session(store, shell, lambda text: progress.tell(component.name, text)))


def _succeeded(name: str, future: Future[None], progress: Progress) -> bool:
    try:
        future.result()
    except (SetupError, OSError) as error:
        progress.tell(name, f"FAILED: {error}")
        return False
    return True


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python3 -m hack.setup",
        description="Set up the real components that demos and tests use, into $ROLLOUT_CACHE.",
    )
    parser.add_argument(
        "components", nargs="*", metavar="COMPONENT", help="default: see --list; needs are included"
    )
    parser.add_argument("--list", action="store_true", help="list the components and stop")
    options = parser.parse_args(argv)
    if unknown := set(options.components) - COMPONENTS.keys():
        parser.error(
            f"no component {', '.join(sorted(unknown))}; there are {', '.join(COMPONENTS)}"
        )
    return options


def _stop(number: int, _: object) -> None:
    stop_all()
    raise SystemExit(128 + number)


def main(argv: Sequence[str]) -> int:
    """Run the command line; return 0 when all that was asked is there, else 1."""
    options = _parse(argv)
    if options.list:
        for component in COMPONENTS.values():
            on_demand = "" if component.default else " (only when named)"
            print(f"{component.name:15} {component.summary}{on_demand}")
        return 0
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    store, progress = Store(default_root()), Progress()
    progress.tell("setup", f"into {store.root}")
    try:
        store.check()
        complete = set_up(options.components or by_default(), store, progress)
    except SetupError as error:
        progress.tell("setup", f"FAILED: {error}")
        return 1
    progress.tell("setup", "all there" if complete else "incomplete")
    return 0 if complete else 1
