"""Layers keep what an overlay's upper directory says, and refuse what no `pack` writes."""

import io
import os
import stat
import tarfile

import pytest

from rollout_sandbox.layer_tar import DamagedLayer, pack, unpack
from rollout_sandbox.trees import remove_tree


def packed(upper) -> bytes:
    target = io.BytesIO()
    pack(upper, target)
    return target.getvalue()


@pytest.fixture
def upper(tmp_path):
    upper = tmp_path / "upper"
    (upper / "etc").mkdir(parents=True)
    (upper / "etc" / "conf").write_text("x")
    (upper / "etc" / "conf").chmod(0o4751)
    os.link(upper / "etc" / "conf", upper / "etc" / "hard")
    (upper / "etc" / "link").symlink_to("/absolute")
    os.mknod(upper / "gone", stat.S_IFCHR, 0)
    (upper / ".rollout" / "run").mkdir(parents=True)
    (upper / "shut").mkdir()
    (upper / "shut" / "in").write_text("y")
    os.utime(upper / "shut", (5, 5))
    (upper / "shut").chmod(0o555)
    yield upper
    remove_tree(upper)


def test_modes_links_times_and_deletions_come_back(upper, tmp_path):
    restored = tmp_path / "restored"
    unpack(io.BytesIO(packed(upper)), restored)
    assert stat.S_IMODE((restored / "etc/conf").stat().st_mode) == 0o4751
    assert (restored / "etc/conf").samefile(restored / "etc/hard")
    assert str((restored / "etc/link").readlink()) == "/absolute"
    assert stat.S_ISCHR((restored / "gone").stat().st_mode)
    assert (restored / "gone").stat().st_rdev == 0
    assert (restored / "shut").stat().st_mtime == 5
    assert stat.S_IMODE((restored / "shut").stat().st_mode) == 0o555
    assert not (restored / ".rollout").exists()
    remove_tree(restored)


def test_opaque_directories_of_either_driver_come_back(tmp_path):
    upper = tmp_path / "upper"
    for name in ("kernel", "fuse", "plain"):
        (upper / name).mkdir(parents=True)
    os.setxattr(upper / "kernel", "user.overlay.opaque", b"y")
    (upper / "fuse" / ".wh..wh..opq").touch()
    restored = tmp_path / "restored"
    unpack(io.BytesIO(packed(upper)), restored)
    for name in ("kernel", "fuse"):
        assert os.getxattr(restored / name, "user.overlay.opaque") == b"y"
    assert os.listxattr(restored / "plain") == []
    assert list((restored / "fuse").iterdir()) == []


def test_the_same_content_has_the_same_bytes(upper):
    assert packed(upper) == packed(upper)


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.parametrize(
    "members",
    [
        [member("../x")],
        [member("/x")],
        [member("a", tarfile.SYMTYPE, "/tmp"), member("a/x")],
        [member("a", tarfile.SYMTYPE, ".."), member("a/.wh.x")],
        [member("dev", tarfile.BLKTYPE)],
        [member("hard", tarfile.LNKTYPE, "../../etc/passwd")],
    ],
)
def test_hostile_members_are_refused(members, tmp_path):
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for info in members:
            tar.addfile(info)
    target.seek(0)
    with pytest.raises(DamagedLayer):
        unpack(target, tmp_path / "restored")
    assert not (tmp_path / "x").exists()


def test_a_cut_tar_is_refused(upper, tmp_path):
    with pytest.raises(DamagedLayer):
        unpack(io.BytesIO(packed(upper)[:700]), tmp_path / "restored")
