"""Runs the benchmarks: `python -m bench [NAME...]`."""

import argparse

from bench import idle_memory, overhead, sandbox

BENCHMARKS = {"overhead": overhead.run, "idle-memory": idle_memory.run, "sandbox": sandbox.run}


def main() -> None:
    """Run the named benchmarks, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    names = parser.parse_args().names or list(BENCHMARKS)
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        parser.error(
            f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}"
        )
    for name in names:
        BENCHMARKS[name]()


if __name__ == "__main__":
    main()
