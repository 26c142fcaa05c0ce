"""What the README tells a newcomer to type works as it is, in that order."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.engine import cached

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.engine,
    pytest.mark.sandbox,
    pytest.mark.timeout(900),
]

REPOSITORY = Path(__file__).parents[2]
WRITTEN = ("coding-demonstration.trajectories.jsonl", "math.trajectories.jsonl")


def _script(section: str) -> str:
    """The code blocks of a section as one shell script."""
    text = (REPOSITORY / "README.md").read_text()
    body = text.split(f"## {section}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"```(sh|python)\n(.*?)```", body, re.DOTALL)
    assert [language for language, _ in blocks] == ["sh", "sh", "python", "sh"]
    words = [
        code if language == "sh" else f"python - <<'PYTHON'\n{code}PYTHON\n"
        for language, code in blocks
    ]
    return "set -euxo pipefail\n" + "".join(words)


def test_first_result_by_hand() -> None:
    for name in ("tiny-qwen3", "SmolLM2-135M-Instruct"):
        cached("models", name)
    with TemporaryDirectory(prefix="ro-", dir="/tmp") as state:
        env = {**os.environ, "ROLLOUT_STATE_DIR": f"{state}/s"}
        try:
            done = subprocess.run(
                ["bash", "-c", _script("First result by hand")],
                cwd=REPOSITORY,
                env=env,
                capture_output=True,
                text=True,
            )
            lines = [(REPOSITORY / name).read_text().splitlines() for name in WRITTEN]
        finally:
            subprocess.run([REPOSITORY / ".venv/bin/rolloutctl", "down"], env=env, check=False)
            for name in WRITTEN:
                (REPOSITORY / name).unlink(missing_ok=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert [len(of_job) for of_job in lines] == [1, 16]
    assert "mean reward 1" in done.stdout
    printed = re.findall(r"^[a-z-]+ scored [01]\.0 True$", done.stdout, re.MULTILINE)
    assert len(printed) == 16, done.stdout
