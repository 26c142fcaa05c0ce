"""Preparing once and forking many times."""

import shutil
import tempfile
from pathlib import Path

from ..errors import LayerNotFound, SandboxDied
from ..manager import SandboxManager
from ..ports import SandboxSpec
from .core import Subject, check, expect, expect_raises

_PREPARE = """
set -e
mkdir -p /opt/app/bin /opt/app/old
echo program >/opt/app/bin/run; chmod 751 /opt/app/bin/run
ln -s run /opt/app/bin/alias; ln /opt/app/bin/run /opt/app/bin/hard
echo secret >/opt/app/locked; chmod 000 /opt/app/locked
mkdir /opt/app/closed; echo x >/opt/app/closed/f; chmod 500 /opt/app/closed
rm -rf /usr/share; mkdir /usr/share; echo only >/usr/share/only; touch /usr/share/other
rm -rf /home
"""
# Of the modes all but the owner's read and write bits: fuse-overlayfs adds those for a plain user.
_INSPECT = """
cat /opt/app/bin/alias; ls -l /opt/app/bin/run /opt/app/locked | cut -c4-10
ls -ld /opt/app/closed | cut -c4-10
[ /opt/app/bin/run -ef /opt/app/bin/hard ] && echo linked
ls -1 /usr/share; ls -d /home 2>/dev/null; ls -1 /.rollout
"""
_SEEN = "program\nxr-x--x\n-------\nx------\nlinked\nonly\nother\nrun\nruntime\n"


@check
async def a_layer_carries_changes_and_deletions(subject: Subject) -> None:
    """Files, modes, links, deleted and replaced directories; a second layer over the first."""
    async with subject.sandbox() as sandbox:
        prepared = await sandbox.command(_PREPARE)
        expect(prepared.exit_code == 0, "preparing", prepared)
        first = await sandbox.commit()
        await expect_raises(SandboxDied, sandbox.bash("echo late"))
    async with subject.sandbox(first) as fork:
        seen = await fork.bash(_INSPECT)
        expect(seen.output == _SEEN, "the fork has the layer", seen)
        await fork.command("rm -rf /opt/app/old /usr/share/only; mkdir /home; echo two >/opt/two")
        second = await fork.commit()
    async with subject.sandbox(first, second) as fork:
        seen = await fork.bash("ls -1 /opt/app /usr/share /home; cat /opt/two /opt/app/bin/run")
        expected = "/home:\n\n/opt/app:\nbin\nclosed\nlocked\n\n/usr/share:\nother\ntwo\nprogram\n"
        expect(seen.output == expected, "the second layer hides and adds", seen)


@check
async def forks_do_not_see_each_other(subject: Subject) -> None:
    """Each has its own copy over the shared one, which stays as it was."""
    async with subject.sandbox() as sandbox:
        await sandbox.write("/workspace/shared", b"base\n")
        layer = await sandbox.commit()
    async with subject.sandbox(layer) as one, subject.sandbox(layer) as two:
        await one.bash("echo one >shared; touch mine /tmp/mine")
        seen = await two.bash("cat shared; ls; ls /tmp")
        expect(seen.output == "base\nshared\n", "the other fork", seen)
    async with subject.sandbox(layer) as later:
        expect(await later.read("shared") == b"base\n", "a later fork")


@check
async def a_layer_is_restored_on_another_node(subject: Subject) -> None:
    """From its blob alone; a damaged or unknown one is an infrastructure error."""
    async with subject.sandbox() as sandbox:
        await sandbox.write("/workspace/f", b"carried")
        layer = await sandbox.commit()
    with tempfile.TemporaryDirectory() as elsewhere:
        blobs = Path(elsewhere) / "blobs"
        blobs.mkdir()
        shutil.copy(subject.manager.layers.blob(layer), blobs)
        backend = subject.manager.backend
        spec = SandboxSpec(image=subject.image, layers=(layer,))
        root = Path(elsewhere) / "node"
        async with SandboxManager(root, owner="node", blobs=blobs, backend=backend) as node:
            async with node.start(spec) as sandbox:
                expect(await sandbox.read("f") == b"carried", "restored")
            unknown = SandboxSpec(image=subject.image, layers=("sha256:" + "0" * 64,))
            await expect_raises(LayerNotFound, node.open(unknown))
            shutil.rmtree(root / "layers" / layer.removeprefix("sha256:"))
            node.layers.blob(layer).chmod(0o644)
            node.layers.blob(layer).write_bytes(b"damaged")
            await expect_raises(LayerNotFound, node.open(spec))
