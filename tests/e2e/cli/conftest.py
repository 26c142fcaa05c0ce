"""The whole system as a person starts it: rolloutctl in a process of its own."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.engine import cached
from tests.support.stub_llm import stub_llm

PROGRAM = [sys.executable, "-c", "from rollout_client.cli import main; main()"]
TASKS = "".join(
    f'{{"id": "t{i}", "instruction": "What is {i} + 1?", "grading": {{"answer": "{i + 1}"}}}}\n'
    for i in range(2)
)


@dataclass(frozen=True)
class Shell:
    """A shell's view of the command: a state directory and a current folder of its own."""

    state: Path
    folder: Path
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        return {**os.environ, "ROLLOUT_STATE_DIR": str(self.state)}

    def ctl(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run rolloutctl to its end."""
        return subprocess.run(
            [*PROGRAM, *words], env=self.env, cwd=self.folder, capture_output=True, text=True
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start rolloutctl."""
        process = subprocess.Popen(
            [*PROGRAM, *words],
            env=self.env,
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.started.append(process)
        return process

    def write_job(self, url: str, *, image: str, samples: int = 2, more: str = "") -> None:
        """Write `job.yaml` and its task file."""
        (self.folder / "tasks.jsonl").write_text(TASKS)
        (self.folder / "job.yaml").write_text(
            f"""
apiVersion: rollout-operator.dev/v1alpha1
kind: LLMPool
metadata: {{name: stub}}
spec: {{model: m, tokenizer: {cached("models", "tiny-qwen3")}, endpoints: [{{url: "{url}"}}]}}
---
apiVersion: rollout-operator.dev/v1alpha1
kind: RolloutJob
metadata: {{name: demo}}
spec:
  handler: math
  tasks: {{uri: tasks.jsonl}}
  samplesPerTask: {samples}
  llm: {{poolRef: {{name: stub}}, maxTurns: 2, sampling: {{maxTokens: 16}}}}
  sandbox: {{image: {image}}}
{more}"""
        )

    @property
    def records(self) -> list[str]:
        """Lines of the JSONL file, if there is one."""
        file = self.folder / "demo.trajectories.jsonl"
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    with tempfile.TemporaryDirectory(prefix="ctl-") as state:
        shell = Shell(Path(state) / "s", tmp_path)
        yield shell
        for process in shell.started:
            with process:
                process.kill()
        shell.ctl("down")


@pytest.fixture(scope="session")
def image() -> str:
    """An image with a shell."""
    return str(cached("images", "python"))


@pytest.fixture(scope="session")
def llm() -> Iterator[str]:
    """URL of an instant LLM."""
    with stub_llm(tokenizer=cached("models", "tiny-qwen3"), output_tokens=8) as stub:
        yield stub.url
