"""`python3 -m hack.slurm up|down`: a private Slurm cluster on this machine, root or not."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from hack.slurm.cluster import Cluster, ClusterFailed
from hack.slurm.config import Shape


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python3 -m hack.slurm", description=__doc__)
    parser.add_argument("action", choices=("up", "down"))
    parser.add_argument("--base", type=Path, default=Path.home() / ".rollout-slurm")
    parser.add_argument("--cpus", type=int, default=16)
    parser.add_argument("--gpus", type=int, default=2)
    options = parser.parse_args()
    cluster = Cluster(options.base.absolute(), Shape(cpus=options.cpus, gpus=options.gpus))
    if options.action == "down":
        cluster.down()
        shutil.rmtree(cluster.base, ignore_errors=True)
        return 0
    if (cluster.base / "pid" / "slurmctld").exists():
        print(f"{cluster.base} has a cluster already: take it down first", file=sys.stderr)
        return 1
    try:
        cluster.up()
    except ClusterFailed as error:
        print(error, file=sys.stderr)
        return 1
    print(f"export SLURM_CONF={cluster.base / 'slurm.conf'}")
    print(f"export SLURM_REST_URL={cluster.rest_url}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
