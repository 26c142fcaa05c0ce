"""Memory of an idle `rolloutctl up`: gateway, operator, node and one warm worker of each stage."""

import time

from rich.console import Console
from rich.table import Table

from bench.processes import pss_mebibytes, tree
from rollout_crds.meta import ObjectMeta
from rollout_crds.rolloutpool import RolloutPool
from tests.support.processes import wait_until
from tests.support.system import running_system

SETTLE_SECONDS = 5
GOAL_MEBIBYTES = 300


def run() -> None:
    """Measure and print."""
    with running_system() as system:
        system.apply(RolloutPool(metadata=ObjectMeta(name="default")))
        wait_until(lambda: len(system.processes()) == 5, "all five processes", 60)
        time.sleep(SETTLE_SECONDS)
        sizes = {role: pss_mebibytes(p.pid) for role, p in system.processes().items()}
        total = sum(pss_mebibytes(process.pid) for process in tree(system.node_pid))
    table = Table(title="Idle memory of one machine (PSS, no engine)")
    table.add_column("process")
    table.add_column("MiB", justify="right")
    for role, size in sizes.items():
        table.add_row(role, f"{size:.0f}")
    table.add_row("all, with the node", f"{total:.0f}")
    Console().print(table, f"goal: under {GOAL_MEBIBYTES} MiB; ratio {total / GOAL_MEBIBYTES:.2f}")
