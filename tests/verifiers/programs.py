"""Programs for x86-64 of no size at all, for candidates that want the memory for something else."""

from __future__ import annotations

import struct

_START = 0x400000
_HEADERS = 64 + 56
SIZE = 0x1122334455660000
"""Stands in `BRIM` for the bytes to take."""


def _elf(code: bytes) -> bytes:
    """A program of one segment, which begins behind the headers."""
    size = _HEADERS + len(code)
    file = b"\x7fELF\2\1\1" + bytes(9)
    file += struct.pack("<2HI3QI6H", 2, 62, 1, _START + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return file + struct.pack("<2I6Q", 1, 5, 0, _START, _START, size, size, 0x1000) + code


def _hoarder() -> bytes:
    make = bytes.fromhex("b83f010000 488d3d2a000000 31f6 0f05")  # memfd_create(a text behind the code, 0)
    fill = bytes.fromhex("89c7 b81d010000 31f6 31d2 41ba00000002 0f05")  # fallocate(that, 0, 0, 32 MiB)
    again = bytes((0xEB, 256 - len(make) - len(fill) - 2))
    return _elf((make + fill + again).ljust(64, b"\0"))


def _brim() -> bytes:
    get = (
        bytes.fromhex("b81d000000 31ff 48be") + struct.pack("<Q", SIZE) + bytes.fromhex("ba80030000 0f05")
    )  # shmget(0, SIZE, 01600)
    attach = bytes.fromhex("89c7 b81e000000 31f6 31d2 0f05")  # shmat(that, 0, 0)
    pages = bytes.fromhex("4889c3 48b9") + struct.pack("<Q", SIZE // 4096)
    touch = bytes.fromhex("c60301 4881c300100000 48ffc9 75f1")  # write to each page
    return _elf(get + attach + pages + touch + bytes.fromhex("b8e7000000 31ff 0f05"))  # exit_group(0)


HOARDER = _hoarder()
"""Fills the memory with files in memory that no process has mapped."""
BRIM = _brim()
"""Takes so much memory of System V, which stays, and ends."""
