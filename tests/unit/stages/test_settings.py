"""Settings of a worker come from its environment; what is missing is named."""

from pathlib import Path

import pytest

from rollout_crds.result import Stage
from rollout_stages.__main__ import main
from rollout_stages.settings import SettingsError, from_environment

COMPLETE = {
    "ROLLOUT_GATEWAY_URL": "unix:///run/gateway.sock",
    "ROLLOUT_JOB_UID": "uid",
    "ROLLOUT_BLOB_URL": "file:///blobs",
    "ROLLOUT_CACHE": "/cache",
}


def test_complete_environment_is_read() -> None:
    more = {"ROLLOUT_POD_NAME": "pod-1", "ROLLOUT_CONCURRENCY": "8", "ROLLOUT_WORK_DIR": "/work"}
    settings = from_environment("run", COMPLETE | more)
    assert settings.stage is Stage.RUN
    assert (settings.worker, settings.concurrency, settings.job_uid) == ("pod-1", 8, "uid")
    assert (settings.images, settings.models) == (Path("/cache/images"), Path("/cache/models"))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"ROLLOUT_GATEWAY_URL": ""}, "ROLLOUT_GATEWAY_URL is not set"),
        ({"ROLLOUT_GATEWAY_URL": "gateway:80"}, "neither `unix://"),
        ({"ROLLOUT_BLOB_URL": ""}, "ROLLOUT_BLOB_URL is not set"),
        ({"ROLLOUT_JOB_UID": ""}, "exactly one of ROLLOUT_JOB_UID"),
        ({"ROLLOUT_POOL": "default/warm"}, "exactly one of ROLLOUT_JOB_UID"),
        ({"ROLLOUT_CONCURRENCY": "many"}, "ROLLOUT_CONCURRENCY is 'many'"),
        ({"ROLLOUT_CONCURRENCY": "0"}, "greater than 0"),
    ],
)
def test_what_is_missing_or_wrong_is_named(changes: dict[str, str], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        from_environment("run", COMPLETE | changes)


def test_unknown_stage_is_refused() -> None:
    with pytest.raises(SettingsError, match="must be one of init, run, eval"):
        from_environment("walk", COMPLETE)


@pytest.mark.parametrize("arguments", [[], ["run"], ["init", "run"]])
def test_bad_usage_is_one_line_and_exit_code_two(
    arguments: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in COMPLETE:
        monkeypatch.delenv(name, raising=False)
    assert main(arguments) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
