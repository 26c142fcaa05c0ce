"""Global options: anywhere on the line, with their defaults resolved."""

from pathlib import Path

import pytest

from rollout_client.cli.failure import CliError
from rollout_client.cli.settings import Settings, hoist_global_options


def test_global_options_may_stand_after_the_command() -> None:
    words = ["get", "rj", "--state-dir", "/s", "--debug", "-o", "json", "--server=http://h:1"]
    assert hoist_global_options(words) == [
        *("--state-dir", "/s", "--debug", "--server=http://h:1"),
        *("get", "rj", "-o", "json"),
    ]


def test_what_follows_a_double_dash_is_left_alone() -> None:
    assert hoist_global_options(["logs", "--", "--debug"]) == ["logs", "--", "--debug"]


def test_an_option_without_its_value_is_left_to_the_parser() -> None:
    assert hoist_global_options(["get", "--server"]) == ["--server", "get"]


def test_an_explicit_state_directory_wins_over_the_servers_variable() -> None:
    env = {"ROLLOUT_SERVER": "http://h:1"}
    assert Settings.from_options(env, None, None).server == "http://h:1"
    named = Settings.from_options(env, None, Path("/s"))
    assert (named.server, named.named_server) == ("unix:///s/run/gateway.sock", False)


def test_a_malformed_server_is_invalid_input() -> None:
    with pytest.raises(CliError, match="--server: URL 'nonsense'") as caught:
        Settings.from_options({}, "nonsense", None)
    assert caught.value.exit_code == 2
