"""The tools: state, exit codes, time-outs, output, files."""

import io
import tarfile

from ..errors import InvalidRequest, PathNotFound, PathRefused, TooLarge
from ..ports import Limits
from .core import Subject, check, expect, expect_raises

_SHOW_SLEEPERS = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline 2>/dev/null; echo; done"


@check
async def shell_keeps_directory_variables_functions_and_status(subject: Subject) -> None:
    """What one command changes, the next one sees."""
    async with subject.sandbox() as sandbox:
        await sandbox.bash("cd /usr; export GREETING=hello; greet() { echo $GREETING; }; false")
        seen = await sandbox.bash("echo $?; pwd; greet; sh -c 'echo $GREETING'")
        expect(seen.output == "1\n/usr\nhello\nhello\n", "the shell keeps its state", seen)


@check
async def exit_codes_are_exact(subject: Subject) -> None:
    """In the shell, in a command of its own, and for a signal."""
    async with subject.sandbox() as sandbox:
        for code in (0, 1, 7, 126, 255):
            in_shell = await sandbox.bash(f"sh -c 'exit {code}'")
            alone = await sandbox.command(f"exit {code}")
            expect(in_shell.exit_code == code == alone.exit_code, "exit code", in_shell, alone)
        killed = await sandbox.command("kill -9 $$")
        expect(killed.exit_code == 137 and not killed.timed_out, "signal 9 is 137", killed)
        missing = await sandbox.bash("no-such-program")
        expect(missing.exit_code == 127, "a missing program is a normal result", missing)


@check
async def any_text_is_a_command(subject: Subject) -> None:
    """Several lines, here-documents, syntax errors, long lines."""
    async with subject.sandbox() as sandbox:
        lines = await sandbox.bash("cat <<'X'\na 'b\nX\nfor i in 1 2; do\n  echo $i\ndone # end")
        expect(lines.output == "a 'b\n1\n2\n", "several lines", lines)
        for wrong in ("echo 'unclosed", "echo ${unset:?}", "echo $((1/0))", "set -u; echo $unset"):
            broken = await sandbox.bash(wrong, timeout_seconds=5)
            expect(broken.exit_code not in (0, None), "an error is a result", wrong, broken)
        text = "x" * 200_000
        long = await sandbox.bash(f"v={text}; echo ${{#v}}")
        expect(long.output == "200000\n", "a long line", long)


@check
async def time_out_keeps_the_shell_and_kills_its_children(subject: Subject) -> None:
    """The shell lives on; what the command started does not."""
    async with subject.sandbox() as sandbox:
        await sandbox.bash("KEPT=yes")
        late = await sandbox.bash("echo begun; (sleep 3301; echo no); echo no", timeout_seconds=0.5)
        expect(late.timed_out and late.output.startswith("begun\n"), "time-out is a result", late)
        expect("no" not in late.output, "nothing runs on", late)
        stubborn = "sh -c 'trap \"\" INT TERM; while :; do sleep 3302; done'; sleep 3303"
        late = await sandbox.bash(stubborn, timeout_seconds=0.5)
        expect(late.timed_out and not late.shell_restarted, "the shell survives", late)
        busy = await sandbox.bash("while :; do :; done", timeout_seconds=0.5)
        expect(busy.timed_out and not busy.shell_restarted, "a busy shell survives", busy)
        after = await sandbox.bash(f"echo $KEPT; {_SHOW_SLEEPERS} | grep 'sleep 33' | grep -v grep")
        expect(after.output == "yes\n", "state is kept and no child is left", after)


@check
async def reading_the_terminal_does_not_swallow_the_protocol(subject: Subject) -> None:
    """A program that waits for input runs out of time and nothing else breaks."""
    async with subject.sandbox() as sandbox:
        waiting = await sandbox.bash("cat", timeout_seconds=0.5)
        expect(waiting.timed_out, "cat waits", waiting)
        after = await sandbox.bash("echo fine")
        expect(after.output == "fine\n" and after.exit_code == 0, "then all is well", after)


@check
async def command_time_out_kills_the_whole_tree(subject: Subject) -> None:
    """Also what left the process group."""
    async with subject.sandbox() as sandbox:
        script = "setsid sleep 3401 & sleep 3402"
        late = await sandbox.command(script, timeout_seconds=0.5)
        expect(late.timed_out and late.exit_code == 137, "time-out is a result", late)
        left = await sandbox.command(f"{_SHOW_SLEEPERS} | grep 'sleep 34' | grep -v grep")
        expect(left.output == "", "no process is left", left)


@check
async def a_daemon_does_not_hold_the_command_up(subject: Subject) -> None:
    """The command is over when its process is, even if another holds its output open."""
    async with subject.sandbox() as sandbox:
        done = await sandbox.command("setsid sleep 5 & echo started", timeout_seconds=4)
        expect(done.output == "started\n" and not done.timed_out, "it ends at once", done)


@check
async def a_lost_shell_is_replaced_and_told(subject: Subject) -> None:
    """`exit` and `exec` end the shell; the caller learns of it."""
    async with subject.sandbox() as sandbox:
        await sandbox.bash("cd /usr; LOST=1")
        ended = await sandbox.bash("echo bye; exit 5")
        expect(ended.shell_restarted and ended.exit_code == 5, "exit is told", ended)
        expect(ended.output.startswith("bye\n"), "its output is kept", ended)
        replaced = await sandbox.bash("exec sh -c 'exit 6'")
        expect(replaced.shell_restarted and replaced.exit_code == 6, "exec is told", replaced)
        fresh = await sandbox.bash("pwd; echo [$LOST]")
        expect(fresh.output == "/workspace\n[]\n", "the new shell is fresh", fresh)


@check
async def long_output_keeps_head_and_tail(subject: Subject) -> None:
    """Bounded whatever the size, and the cut is noted."""
    async with subject.sandbox(limits=Limits(output_bytes=1000)) as sandbox:
        for result in (await sandbox.bash("seq 300000"), await sandbox.command("seq 300000")):
            text = result.output
            expect(text.startswith("1\n2\n") and text.endswith("300000\n"), "head and tail", text)
            expect(result.cut_bytes > 1_900_000 and "bytes cut" in text, "a note", result.cut_bytes)
            expect(len(text) < 1100, "bounded", len(text))


@check
async def output_is_text_whatever_the_bytes(subject: Subject) -> None:
    """Binary and cut characters become replacement characters; UTF-8 stays; line ends stay."""
    async with subject.sandbox(limits=Limits(output_bytes=101)) as sandbox:
        binary = await sandbox.bash(r"printf 'a\377\000b\r\n'")
        expect(binary.output == "a\ufffd\0b\r\n", "binary", binary)
        cut = await sandbox.bash("i=0; while [ $i -lt 99 ]; do printf é; i=$((i+1)); done")
        expect("\ufffd" not in cut.output, "no half characters at the cut", cut)


@check
async def output_can_not_be_forged(subject: Subject) -> None:
    """Tracing, prompts and text that looks like the protocol's change nothing."""
    async with subject.sandbox() as sandbox:
        noisy = await sandbox.bash(
            "set -x; PS1='\\036x\\036 '; printf '\\036abc\\0360\\036'; false"
        )
        expect(noisy.exit_code == 1, "the code is the command's", noisy)
        expect("abc" in noisy.output, "the text stays text", noisy)
        await sandbox.bash("set +x")
        after = await sandbox.bash("exec 2>&1 >/dev/null; echo hidden; false")
        expect(after.exit_code == 1 and "hidden" not in after.output, "redirected", after)


@check
async def python_keeps_variables_and_reports_errors(subject: Subject) -> None:
    """Results, streams, errors and images."""
    async with subject.sandbox() as sandbox:
        await sandbox.ipython("value = 20")
        result = await sandbox.ipython("print('é')\nvalue + 1")
        expect((result.status, result.output) == ("ok", "é\n21\n"), "result", result)
        failed = await sandbox.ipython("1/0")
        expect(failed.error_name == "ZeroDivisionError", "error", failed)
        expect("ZeroDivisionError" in failed.output and "\x1b" not in failed.output, "text", failed)
        image = await sandbox.ipython(
            "from IPython.display import display\n"
            "display({'image/png': 'aGk=', 'text/plain': 'pic'}, raw=True)"
        )
        expect(image.images == ["aGk="], "image", image)


@check
async def python_time_out_interrupts_and_a_dead_kernel_is_replaced(subject: Subject) -> None:
    """Variables survive an interrupt; a kernel's end is told."""
    async with subject.sandbox() as sandbox:
        await sandbox.ipython("kept = 1")
        late = await sandbox.ipython("import time; time.sleep(60)", timeout_seconds=0.5)
        expect(late.status == "timed_out" and not late.kernel_restarted, "interrupt", late)
        expect((await sandbox.ipython("kept")).output == "1\n", "kept")
        dead = await sandbox.ipython("import os; os._exit(3)", timeout_seconds=20)
        expect(dead.status == "died" and dead.kernel_restarted, "death is told", dead)
        fresh = await sandbox.ipython("'kept' in globals()")
        expect(fresh.output == "False\n", "a fresh kernel", fresh)


@check
async def files_round_trip(subject: Subject) -> None:
    """Any bytes, modes, parents; refusals by cause."""
    content = bytes(range(256)) * 20_000
    async with subject.sandbox() as sandbox:
        await sandbox.write("/data/deep/blob", content, mode=0o750)
        expect(await sandbox.read("/data/deep/blob") == content, "content")
        mode = await sandbox.bash("ls -l /data/deep/blob")
        expect(mode.output.startswith("-rwxr-x---"), "mode", mode)
        await sandbox.write("relative.txt", b"x")
        listing = await sandbox.list("/workspace")
        expect([e.name for e in listing.entries] == ["relative.txt"], "listing", listing)
        await sandbox.bash("mkfifo pipe; ln -s /nowhere dangling")
        await expect_raises(PathNotFound, sandbox.read("/nothing"))
        await expect_raises(PathRefused, sandbox.read("/data"))
        await expect_raises(PathRefused, sandbox.read("pipe"))
        await expect_raises(TooLarge, sandbox.read("/data/deep/blob", max_bytes=100))
        await expect_raises(PathNotFound, sandbox.write("/no/such/dir/f", b"", parents=False))


@check
async def artefacts_move_between_sandboxes(subject: Subject) -> None:
    """Declared paths arrive with content, modes and links, and replace what was there."""
    async with subject.sandbox() as source, subject.sandbox() as target:
        await source.bash(
            "mkdir -p out/sub; echo new >out/sub/f; chmod 700 out/sub/f; ln -s f out/l"
        )
        archive = await source.export(["/workspace/out"])
        await target.bash("mkdir -p out/sub; echo old >out/sub/f")
        await target.import_(archive, ["/workspace/out"])
        seen = await target.bash("cat out/sub/f; ls -l out/sub/f out/l | cut -c1-10")
        expect(seen.output == "new\nlrwxrwxrwx\n-rwx------\n", "the artefact", seen)
        await source.bash("head -c 300000 /dev/zero >big")
        await expect_raises(TooLarge, source.export(["big"], max_bytes=100_000))
        await expect_raises(PathNotFound, source.export(["absent"]))


@check
async def hostile_archives_are_refused(subject: Subject) -> None:
    """Nothing outside the declared paths, nothing through a symlink."""
    async with subject.sandbox() as sandbox:
        for name in ("etc/passwd", "workspace/out/../../etc/passwd", "/etc/passwd"):
            refusal = InvalidRequest if ".." in name else PathRefused
            await expect_raises(refusal, sandbox.import_(_tar(name), ["/workspace/out"]))
        await sandbox.bash("mkdir -p out; ln -s /etc out/link")
        through = _tar("workspace/out/link/planted")
        await expect_raises(PathRefused, sandbox.import_(through, ["/workspace/out"]))
        await expect_raises(InvalidRequest, sandbox.import_(b"not a tar" * 99, ["/workspace/out"]))
        planted = await sandbox.bash("ls /etc/planted")
        expect(planted.exit_code != 0, "nothing was planted", planted)


def _tar(name: str) -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = 2
        tar.addfile(info, io.BytesIO(b"hi"))
    return target.getvalue()
