"""Where the state, the cache and the gateway are."""

from pathlib import Path

import pytest

from rollout_crds.locations import (
    cache_dir,
    default_url,
    image_paths,
    images_dir,
    parse_server_url,
    state_dir,
)


def test_the_state_directory_follows_its_variable_then_xdg_then_home() -> None:
    home = {"HOME": "/h"}
    assert state_dir(home) == Path("/h/.local/state/rollout-operator")
    assert state_dir({**home, "XDG_STATE_HOME": "/x"}) == Path("/x/rollout-operator")
    assert state_dir({**home, "ROLLOUT_STATE_DIR": "/s"}) == Path("/s")


def test_images_are_in_the_cache_unless_named() -> None:
    assert cache_dir({"HOME": "/h"}) == Path("/h/.cache/rollout-operator")
    assert images_dir({"ROLLOUT_CACHE": "/c"}) == Path("/c/images")
    assert images_dir({"ROLLOUT_CACHE": "/c", "ROLLOUT_IMAGES": "/i"}) == Path("/i")


def test_the_default_gateway_is_that_of_the_state_directory() -> None:
    assert default_url({"ROLLOUT_STATE_DIR": "/s"}) == "unix:///s/run/gateway.sock"
    assert default_url({"ROLLOUT_SERVER": "http://h:1"}) == "http://h:1"


def test_both_forms_of_a_server_url_are_taken_apart() -> None:
    unix = parse_server_url("unix:///a/b.sock")
    assert unix.socket_path == "/a/b.sock"
    tcp = parse_server_url("http://host:80/")
    assert (tcp.base_url, tcp.socket_path) == ("http://host:80", None)


@pytest.mark.parametrize("url", ["", "host:80", "unix://rel.sock", "unix:///", "ftp://h"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="neither"):
        parse_server_url(url)


@pytest.mark.parametrize(
    ("image", "paths"),
    [
        ("python", ["/i/python.sif", "/i/python"]),
        ("/a/b.sif", ["/a/b.sif"]),
        ("docker-archive:/a/b.tar", ["/a/b.tar"]),
        ("oci:/a/b", ["/a/b"]),
        ("name:tag", ["/i/name:tag.sif", "/i/name:tag"]),
    ],
)
def test_an_image_is_a_path_an_archive_or_a_name_in_the_images(
    image: str, paths: list[str]
) -> None:
    assert [str(path) for path in image_paths(image, Path("/i"))] == paths
