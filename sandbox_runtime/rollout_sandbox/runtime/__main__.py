"""`python -m rollout_sandbox.runtime build [--out DIR]`: the runtime before the first start."""

import argparse
from pathlib import Path

from ..paths import cache_root
from .build import build_runtime, ensure_runtime


def main() -> None:
    """Build the runtime into the cache, or into a directory of the caller's choice."""
    parser = argparse.ArgumentParser(prog="python -m rollout_sandbox.runtime")
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build the runtime unless it is there")
    build.add_argument("--out", type=Path, help="directory to make (default: the cache)")
    arguments = parser.parse_args()
    if arguments.out is None:
        print(ensure_runtime(cache_root()))
    else:
        build_runtime(arguments.out)
        print(arguments.out)


if __name__ == "__main__":
    main()
