"""Lets a program of Debian sid start on an older glibc.

glibc 2.38 gave `strtol` and its family second names (`__isoc23_strtol`) for C23; programs
compiled on a newer system ask for those and so refuse to start on an older one, though the plain
functions do the same. For every such import the symbol's name is moved forward to the plain
name inside the same string, its version becomes the oldest one of glibc that the
program already asks for, and the need for the newer glibc is rewritten to it. No byte moves.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

NEWER, OLDER = "GLIBC_2.38", "GLIBC_2.2.5"
C23_PREFIX = "__isoc23_"
_DYNSYM, _VERNEED, _VERSYM = 11, 0x6FFFFFFE, 0x6FFFFFFF


@dataclass(frozen=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class _Need:
    """One needed version: where its record is, the index symbols use, its name's offset."""

    record: int
    index: int
    name_offset: int


def _hash(name: str) -> int:
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ (high >> 24)) & ~high & 0xFFFFFFFF
    return value


class _Image:
    """A 64-bit little-endian ELF file in memory."""

    def __init__(self, data: bytearray) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            message = "not a 64-bit little-endian ELF file"
            raise ValueError(message)
        self.data = data
        (table,) = struct.unpack_from("<Q", data, 0x28)
        size, count = struct.unpack_from("<HH", data, 0x3A)
        self.sections = [self._section(table + i * size) for i in range(count)]
        self.symbols = self._first(_DYNSYM)
        self.strings = self.sections[self.symbols.link].offset

    def _section(self, at: int) -> _Section:
        _, kind, _, _, offset, size, link, *_ = struct.unpack_from("<IIQQQQIIQQ", self.data, at)
        return _Section(kind, offset, size, link)

    def _first(self, kind: int) -> _Section:
        return next(section for section in self.sections if section.kind == kind)

    def text(self, offset: int) -> str:
        start = self.strings + offset
        return self.data[start : self.data.index(0, start)].decode()

    def libc_needs(self) -> dict[str, _Need]:
        needs: dict[str, _Need] = {}
        at = self._first(_VERNEED).offset
        while True:
            _, count, library, first, following = struct.unpack_from("<HHIII", self.data, at)
            record = at + first
            for _ in range(count):
                _, _, index, name, step = struct.unpack_from("<IHHII", self.data, record)
                if self.text(library) == "libc.so.6":
                    needs[self.text(name)] = _Need(record, index, name)
                record += step
            if not following:
                return needs
            at += following

    def rename_c23_imports(self, newer: _Need, older: _Need) -> list[str]:
        versions = self._first(_VERSYM).offset
        renamed: list[str] = []
        for i in range(self.symbols.size // 24):
            symbol, version = self.symbols.offset + 24 * i, versions + 2 * i
            (index,) = struct.unpack_from("<H", self.data, version)
            if index & 0x7FFF != newer.index:
                continue
            (offset,) = struct.unpack_from("<I", self.data, symbol)
            name = self.text(offset)
            if not name.startswith(C23_PREFIX):
                message = f"{name} exists only in {NEWER}"
                raise ValueError(message)
            struct.pack_into("<I", self.data, symbol, offset + len(C23_PREFIX))
            struct.pack_into("<H", self.data, version, older.index)
            renamed.append(name)
        struct.pack_into("<I", self.data, newer.record, _hash(OLDER))
        struct.pack_into("<I", self.data, newer.record + 8, older.name_offset)
        return renamed


def lower_glibc_need(path: Path) -> list[str]:
    """Rewrite `path` to start on a glibc before 2.38; return the imports that were renamed.

    Raises:
        ValueError: It is no such ELF file, or it uses something that only the newer glibc has.
    """
    image = _Image(bytearray(path.read_bytes()))
    needs = image.libc_needs()
    if NEWER not in needs:
        return []
    renamed = image.rename_c23_imports(needs[NEWER], needs[OLDER])
    path.write_bytes(image.data)
    return renamed
