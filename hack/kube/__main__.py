"""A cluster for people: `python -m hack.kube up [--node]`, then `kubectl ...`, then `down`.

A keeper in the background owns the cluster; when it ends, however it does, so does the cluster.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from hack.kube.control_plane import control_plane
from hack.kube.errors import KubeError, wait_until
from hack.kube.fake_kubelet import run_nodes
from hack.kube.folder import base, claimed, owner, remove
from hack.kube.node import cluster
from hack.kube.process import kubectl

_START_S, _STOP_S = 180.0, 30.0
_READY = "ready.json"


def _keep(options: argparse.Namespace) -> int:
    """Hold the cluster until a signal asks to end."""
    folder, asked = options.folder, threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    with ExitStack() as stack:
        stack.enter_context(claimed(folder))
        if options.node:
            plane, _ = stack.enter_context(cluster(folder, audit=options.audit))
        else:
            plane = stack.enter_context(control_plane(folder, audit=options.audit))
        ready = {"url": plane.url, "kubeconfig": str(plane.kubeconfig), "node": options.node}
        (folder / f".{_READY}").write_text(json.dumps(ready))
        (folder / f".{_READY}").rename(folder / _READY)
        stack.callback((folder / _READY).unlink)
        asked.wait()
    return 0


def _up(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    if (pid := owner(folder)) is not None:
        raise KubeError(f"a cluster runs already in {folder} (process {pid}): run `down` first")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / _READY).unlink(missing_ok=True)
    flags = [flag for flag in ("node", "audit") if getattr(options, flag)]
    log = folder.with_name(f"{folder.name}.log")
    with log.open("wb") as out:
        keeper = subprocess.Popen(
            [
                *(sys.executable, "-m", "hack.kube", f"--folder={folder}", "keep"),
                *(f"--{flag}" for flag in flags),
            ],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def started() -> bool:
        if keeper.poll() is not None:
            raise KubeError(log.read_text().strip())
        return (folder / _READY).exists()

    wait_until(started, f"the cluster (see {log})", _START_S)
    ready = _state(folder)
    print(f"{ready['url']} answers; export KUBECONFIG={ready['kubeconfig']}")
    return 0


def _state(folder: Path) -> dict[str, Any]:
    if owner(folder) is None or not (folder / _READY).exists():
        raise KubeError(f"no cluster runs in {folder}: run `python -m hack.kube up`")
    state: dict[str, Any] = json.loads((folder / _READY).read_text())
    return state


def _down(options: argparse.Namespace) -> int:
    folder: Path = options.folder
    if (pid := owner(folder)) is not None:
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: owner(folder) is None, f"process {pid} to end", _STOP_S)
    if folder.exists():
        with claimed(folder):
            remove(folder)
    folder.with_name(f"{folder.name}.log").unlink(missing_ok=True)
    return 0


def _status(options: argparse.Namespace) -> int:
    state = _state(options.folder)
    what = "control plane and node" if state["node"] else "control plane"
    print(f"{what} at {state['url']}, kept by process {owner(options.folder)}")
    print(f"KUBECONFIG={state['kubeconfig']}")
    return 0


def _kubectl(options: argparse.Namespace) -> int:
    kubeconfig = Path(_state(options.folder)["kubeconfig"])
    return subprocess.run([*kubectl(kubeconfig), *options.words]).returncode


def _fake_nodes(options: argparse.Namespace) -> int:
    run_nodes(Path(_state(options.folder)["kubeconfig"]), options.count)
    return 0


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m hack.kube", description=__doc__)
    parser.add_argument("--folder", type=Path, help="of the cluster; default: one of this user's")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, function, text in (
        ("up", _up, "start a cluster in the background and wait until it is ready"),
        ("keep", _keep, "start a cluster and hold it until it is interrupted"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--node", action="store_true", help="with a real node, as root")
        command.add_argument("--audit", action="store_true", help="log every request")
        command.set_defaults(function=function)
    commands.add_parser("down", help="end it and remove all of it").set_defaults(function=_down)
    commands.add_parser("status", help="tell what runs").set_defaults(function=_status)
    through = commands.add_parser("kubectl", help="run kubectl as administrator", add_help=False)
    through.add_argument("words", nargs=argparse.REMAINDER)
    through.set_defaults(function=_kubectl)
    fakes = commands.add_parser("fake-nodes", help="play nodes without containers")
    fakes.add_argument("--count", type=int, default=1)
    fakes.set_defaults(function=_fake_nodes)
    options = parser.parse_args(argv)
    options.folder = (options.folder or base() / "default").absolute()
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; a failure is one line (with the end of a log) and status 1."""
    try:
        options = _parse(argv)
        status: int = options.function(options)
    except KubeError as error:
        print(f"hack.kube: {error}", file=sys.stderr)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main())
