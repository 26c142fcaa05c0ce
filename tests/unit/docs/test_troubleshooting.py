"""The troubleshooting page has exactly one row for each reason, with the reason's own meaning."""

import re
from pathlib import Path

import pytest

from rollout_crds.reasons import FailureReason, Reason

PAGE = (Path(__file__).parents[3] / "docs/troubleshooting.md").read_text()
CONDITIONS, FAILURES = PAGE.split("## Failures of a rollout")


@pytest.mark.parametrize(
    ("section", "reasons"),
    [(CONDITIONS, Reason), (FAILURES, FailureReason)],
    ids=["conditions", "failures"],
)
def test_every_reason_has_one_row_and_no_row_is_left_over(section: str, reasons: type) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
    assert sorted(rows) == sorted(reason.value for reason in reasons)
