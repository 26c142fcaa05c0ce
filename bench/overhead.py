"""What our machinery costs per rollout, end to end, with an LLM that answers at once.

Work: rollouts of two model calls and one bash action in a sandbox of their own, graded by the math
handler. Baselines: what a script without any service does for the same work: the same two calls
and one `apptainer exec`, or one `bwrap`, with the command per rollout, with the same concurrency,
nothing stored, nothing retried, no token record, no grading.
"""

import asyncio
import os
import time
from dataclasses import dataclass
from pathlib import Path

import httpx2
from rich.console import Console
from rich.table import Table

from bench.processes import cpu_seconds
from hack.setup.store import default_root
from rollout_crds.rolloutjob import RolloutJob
from tests.support.stub_jobs import SCRIPT, arithmetic_job, stub_pool
from tests.support.stub_llm import stub_llm
from tests.support.system import running_system

TASKS, SAMPLES, CONCURRENCY = 25, 8, 8
ROLLOUTS = TASKS * SAMPLES
PROMPT = list(range(64))
COMMAND = ("sh", "-c", "echo $((6*7))")
Words = tuple[str, ...]


@dataclass(frozen=True)
class Cost:
    """Of one rollout, in milliseconds."""

    wall: float
    cpu: float


def run() -> None:
    """Measure both and print the ratio."""
    cache = default_root()
    tokenizer = cache / "models" / "tiny-qwen3"
    with stub_llm(tokenizer=tokenizer, script=SCRIPT) as stub:
        ours = _ours(stub.url, tokenizer)
        scripts = {
            name: asyncio.run(_baseline(stub.url, words))
            for name, words in _sandboxes(cache).items()
        }
    _print(ours, scripts)


def _sandboxes(cache: Path) -> dict[str, Words]:
    apptainer = ("--quiet", "exec", "--userns", "--containall", "--net", "--network", "none")
    return {
        "script with apptainer": (
            *(str(cache / "bin" / "apptainer"), *apptainer),
            *(str(cache / "images" / "busybox.sif"), *COMMAND),
        ),
        "script with bwrap": (
            *("bwrap", "--unshare-all", "--die-with-parent"),
            *("--ro-bind", str(cache / "images" / "busybox"), "/", *COMMAND),
        ),
    }


def _ours(url: str, tokenizer: Path) -> Cost:
    stages = {
        "init": {"concurrency": 2},
        "run": {"concurrency": CONCURRENCY},
        "eval": {"concurrency": CONCURRENCY},
    }
    with running_system() as system, system.client() as client:
        system.apply(stub_pool(url, tokenizer), arithmetic_job("warm", 1, 1, stages=stages))
        client.wait(RolloutJob, "warm", "Succeeded", timeout_seconds=120)
        cpu, start = cpu_seconds(system.node_pid), time.perf_counter()
        client.apply(arithmetic_job("bench", TASKS, SAMPLES, stages=stages))
        client.wait(RolloutJob, "bench", "Succeeded", timeout_seconds=300)
        wall = time.perf_counter() - start
        return _per_rollout(wall, cpu_seconds(system.node_pid) - cpu)


async def _baseline(url: str, sandbox: Words) -> Cost:
    gate = asyncio.Semaphore(CONCURRENCY)
    before, start = os.times(), time.perf_counter()
    async with httpx2.AsyncClient(base_url=url) as client:
        await asyncio.gather(*(_script(client, sandbox, gate) for _ in range(ROLLOUTS)))
    after = os.times()
    return _per_rollout(time.perf_counter() - start, sum(after[:4]) - sum(before[:4]))


async def _script(client: httpx2.AsyncClient, sandbox: Words, gate: asyncio.Semaphore) -> None:
    body = {"token_ids": PROMPT, "sampling_params": {"max_tokens": 64, "logprobs": 1}}
    async with gate:
        for _ in range(2):
            response = await client.post("/inference/v1/generate", json=body)
            response.raise_for_status()
        process = await asyncio.create_subprocess_exec(*sandbox, stdout=asyncio.subprocess.PIPE)
        output, _ = await process.communicate()
        if output.strip() != b"42":
            msg = f"the baseline's sandbox printed {output!r}"
            raise RuntimeError(msg)


def _per_rollout(wall: float, cpu: float) -> Cost:
    return Cost(1000 * wall / ROLLOUTS, 1000 * cpu / ROLLOUTS)


def _print(ours: Cost, scripts: dict[str, Cost]) -> None:
    table = Table(title=f"Overhead per rollout, {ROLLOUTS} rollouts, {CONCURRENCY} at once")
    table.add_column("")
    for name in ("wall ms", "ratio", "CPU ms", "ratio"):
        table.add_column(name, justify="right")
    for name, cost in {"rollout service": ours, **scripts}.items():
        wall, cpu = ours.wall / cost.wall, ours.cpu / cost.cpu
        table.add_row(name, f"{cost.wall:.1f}", f"{wall:.1f}", f"{cost.cpu:.1f}", f"{cpu:.1f}")
    Console().print(table)
