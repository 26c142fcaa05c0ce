"""Enters a directory image with bubblewrap over a kernel overlay; needs neither root nor FUSE.

The overlay is mounted with `userxattr` in a user namespace of its own, so that deleting a
directory of the image works; bubblewrap then makes a second, inner user namespace, whose root has
no power over that mount.
"""

from collections.abc import Sequence

from ..errors import SandboxUnavailable
from ..ports import KERNEL_SETTINGS, RUN_MOUNT, RUNTIME_MOUNT, Entry, Launch

# Inotify is counted per host user: what this namespace may have of it leaves some to the worker.
_MOUNT = """\
mount -t overlay overlay -o "$1" "$2" && shift 2 || exit
echo 32 2>/dev/null >/proc/sys/user/max_inotify_instances
echo 8192 2>/dev/null >/proc/sys/user/max_inotify_watches
exec "$@"
"""


class Bubblewrap:
    """The backend for machines without Apptainer."""

    name = "bubblewrap"
    image_kinds = frozenset({"directory"})

    def launch(self, entry: Entry, server: Sequence[str]) -> Launch:
        """Describe a sandbox; see `ports.SandboxBackend`."""
        place = entry.place
        argv = [
            *("setpriv", "--pdeathsig", "KILL", "--"),
            *("unshare", "--user", "--map-root-user", "--mount", "--"),
            *("sh", "-c", _MOUNT, "sh", overlay_options(entry), str(place.merged)),
            *("bwrap", "--unshare-all", "--die-with-parent", "--as-pid-1", "--new-session"),
            *("--hostname", "sandbox"),
            *("--bind", str(place.merged), "/"),
            *("--ro-bind", str(entry.runtime), RUNTIME_MOUNT),
            *("--bind", str(place.run), RUN_MOUNT),
            *("--proc", "/proc", *_read_only_kernel(), "--dev", "/dev"),
            *("--bind", str(place.scratch / "tmp"), "/tmp"),  # noqa: S108 - inside the sandbox
            *("--bind", str(place.scratch / "var_tmp"), "/var/tmp"),  # noqa: S108
            *("--chdir", "/", "--", *server),
        ]
        return Launch(argv=tuple(argv), env=dict(entry.env))


def _read_only_kernel() -> list[str]:
    """Return binds that keep the host's root, without any capability, from setting the kernel."""
    places = (f"/proc/{name}" for name in KERNEL_SETTINGS)
    return [word for place in places for word in ("--ro-bind-try", place, place)]


def overlay_options(entry: Entry) -> str:
    """Return the mount options of the sandbox's overlay; the highest lower layer comes first.

    Raises:
        SandboxUnavailable: a path holds a character that the options can't carry.
    """
    lower = [*(str(layer / "upper") for layer in reversed(entry.layers)), str(entry.image.path)]
    upper, work = entry.place.upper, entry.place.overlay / "work"
    for path in (*lower, str(upper)):
        if bad := set(path) & set(":,\\"):
            message = f"{path}: the path holds {sorted(bad)}, which an overlay mount can't take"
            raise SandboxUnavailable(message)
    return f"lowerdir={':'.join(lower)},upperdir={upper},workdir={work},userxattr"
