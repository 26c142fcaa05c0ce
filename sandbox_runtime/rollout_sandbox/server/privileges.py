"""Gives up what the sandbox's root does not need, for the server and all that it starts.

What stays lets an agent install software and change owners and modes. What goes would let it mount,
trace the server, or undo the read-only mounts of the runtime. Done here since backends differ.
"""

import ctypes
import os
from collections.abc import Iterable

# Numbers of linux/capability.h.
KEPT = {
    "chown": 0,
    "dac_override": 1,
    "fowner": 3,
    "fsetid": 4,
    "setgid": 6,
    "setuid": 7,
    "setpcap": 8,
    "net_bind_service": 10,
    "sys_chroot": 18,
    "setfcap": 31,
}
_LAST_CAPABILITY = 63
_VERSION_3 = 0x20080522
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4

_KEYCTL = {"x86_64": 250, "aarch64": 219}
_JOIN_SESSION_KEYRING = 1

_libc = ctypes.CDLL(None, use_errno=True)


def mask(numbers: Iterable[int]) -> int:
    """Return the bits of capability numbers.

    >>> bin(mask([0, 3]))
    '0b1001'
    """
    return sum(1 << number for number in set(numbers))


def shed() -> None:
    """Keep only `KEPT`, here and in all descendants, and forbid being traced or dumped."""
    kept = mask(KEPT.values())
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for number in range(_LAST_CAPABILITY + 1):
        if not kept >> number & 1:
            _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    _restrict_own_sets(kept)
    _libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    _leave_the_keyring()


def _leave_the_keyring() -> None:
    """Take an empty session keyring: the worker's, which is inherited, may hold its tickets."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _libc.syscall(number, _JOIN_SESSION_KEYRING, None)


def _restrict_own_sets(kept: int) -> None:
    header = (ctypes.c_uint32 * 2)(_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()
    _libc.capget(header, sets)
    for half in range(2):
        bits = kept >> (32 * half) & 0xFFFFFFFF
        for kind in range(2):  # effective, permitted
            sets[3 * half + kind] &= bits
        sets[3 * half + 2] = 0  # inheritable
    if _libc.capset(header, sets) != 0:
        message = "the capabilities could not be given up"
        raise OSError(ctypes.get_errno(), message)
