"""Runs the instant LLM stub as a process of its own, with or without a script."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class RunningStub:
    """A stub that listens: its base URL (with `uds`, over that Unix socket) and its process."""

    url: str
    process: subprocess.Popen[str]
    uds: Path | None = None


@contextmanager
def stub_llm(
    *,
    tokenizer: Path | None = None,
    script: Mapping[int, str] | None = None,
    uds: Path | None = None,
    latency_ms: float = 0,
    output_tokens: int = 32,
    max_model_len: int = 32_768,
    model: str = "m",
) -> Iterator[RunningStub]:
    """Run a stub for the body; `script` maps a turn's number, from 1, to the text it answers."""
    words = [sys.executable, "-m", "hack.stub_llm", "--model", model]
    words += ["--latency-ms", str(latency_ms), "--output-tokens", str(output_tokens)]
    words += ["--max-model-len", str(max_model_len)]
    words += ["--tokenizer", str(tokenizer)] if tokenizer else []
    words += ["--uds", str(uds)] if uds else []
    with TemporaryDirectory() as folder:
        if script:
            path = Path(folder) / "script.json"
            path.write_text(json.dumps({str(turn): text for turn, text in script.items()}))
            words += ["--script", str(path)]
        with subprocess.Popen(words, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                greeting = process.stdout.readline().split()
                assert greeting[:2] == ["listening", "on"], "the stub ended before it listened"
                yield RunningStub("http://stub" if uds else greeting[2], process, uds)
            finally:
                process.terminate()
