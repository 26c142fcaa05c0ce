"""A pytest plugin for full runs: a test that is skipped for want of set-up fails the run.

A skip is allowed only where its reason says that the thing cannot be had on this machine, by
starting with `not available here:`. Tests marked `engine` share one worker, so that one server
serves them all, and so do those marked `kubernetes` and those marked `slurm`.

    python -m pytest -p tests.support.strict
"""

from __future__ import annotations

import pytest

ALLOWED = "not available here:"
_refused: list[str] = []


def _reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def _note(report: pytest.CollectReport | pytest.TestReport) -> None:
    expected_failure = hasattr(report, "wasxfail")
    if report.skipped and not expected_failure and not _reason(report).startswith(ALLOWED):
        _refused.append(f"{report.nodeid}: {_reason(report)}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a skipped test."""
    _note(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a module that was skipped whole."""
    _note(report)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of a server that is started once together when workers share the run."""
    for item in items:
        for server in ("engine", "kubernetes", "slurm"):
            if item.get_closest_marker(server):
                item.add_marker(pytest.mark.xdist_group(server))


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run that was fine but for refused skips."""
    if _refused and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List what was skipped though it could have been set up."""
    if _refused:
        terminalreporter.section("skipped, but must run here", red=True)
        for line in _refused:
            terminalreporter.line(line)
