"""Seeds of model calls."""

import hashlib


def call_seed(base: int, sample_index: int, call_index: int) -> int:
    """The seed of one model call, in `[0, 2^31)`: another one for each sample and call."""
    digest = hashlib.sha256(f"{base}/{sample_index}/{call_index}".encode()).digest()
    return int.from_bytes(digest[:4]) & 0x7FFF_FFFF
