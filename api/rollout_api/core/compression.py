"""Compression of the large JSON texts that are stored."""

import threading

import zstandard

_local = threading.local()  # zstandard's contexts are not safe to share between threads


def compress(text: str | bytes) -> bytes:
    """Compress JSON text."""
    data = text.encode() if isinstance(text, str) else text
    compressor = getattr(_local, "compressor", None)
    if compressor is None:
        compressor = _local.compressor = zstandard.ZstdCompressor(level=3)
    return bytes(compressor.compress(data))


def decompress(data: bytes) -> str:
    """Read compressed JSON text."""
    decompressor = getattr(_local, "decompressor", None)
    if decompressor is None:
        decompressor = _local.decompressor = zstandard.ZstdDecompressor()
    return str(decompressor.decompress(data), "utf-8")
