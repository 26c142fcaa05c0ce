"""The processes that idle on every machine load no library that they do not use."""

import subprocess
import sys

import pytest

HEAVY = {"kopf", "kubernetes", "fastapi", "uvicorn", "sqlalchemy", "typer", "rich", "tokenizers"}


@pytest.mark.parametrize("module", ["rollout_operator.__main__", "rollout_operator.node.__main__"])
def test_an_idle_process_stays_small(module):
    code = f"import sys, {module}; print(*{{name.split('.')[0] for name in sys.modules}})"
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert HEAVY & set(output.stdout.split()) == set()
