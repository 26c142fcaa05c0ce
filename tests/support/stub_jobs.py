"""Jobs for whole-system tests with the instant LLM stub: a scripted agent that uses bash once."""

from __future__ import annotations

from pathlib import Path

from rollout_crds.llmpool import LLMPool
from rollout_crds.rolloutjob import RolloutJob

MODEL = "m"
SCRIPT = {
    1: '<tool_call>\n{"name": "bash", "arguments": {"command": "echo $((6*7))"}}\n</tool_call>',
    2: "The answer is \\boxed{42}.",
}


def stub_pool(url: str, tokenizer: Path, name: str = "stub") -> LLMPool:
    """The pool of one running stub."""
    spec = {"model": MODEL, "tokenizer": str(tokenizer), "endpoints": [{"url": url}]}
    return LLMPool.model_validate({"metadata": {"name": name}, "spec": spec})


def arithmetic_job(name: str, tasks: int, samples: int, **spec: object) -> RolloutJob:
    """Each task has the answer 42, so the script earns reward 1 in all of them."""
    inline = [
        {"id": f"t{i}", "instruction": "What is 6 times 7?", "grading": {"answer": "42"}}
        for i in range(tasks)
    ]
    base = {
        "tasks": {"inline": inline},
        "handler": "math",
        "samplesPerTask": samples,
        "agent": {"tools": ["bash"]},
        "llm": {"poolRef": {"name": "stub"}, "maxTurns": 4},
        "sandbox": {"image": "busybox"},
    }
    return RolloutJob.model_validate({"metadata": {"name": name}, "spec": {**base, **spec}})
