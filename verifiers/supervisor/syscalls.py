"""Takes away the system calls through which a candidate could outlive its processes or leave word. Standard library alone.

The engine's own filter stays in force; this one is added to it. Without `socket` there is no address to take, no name to leave and
no counter of a network to move. Without `sendmsg` no file can be put into a socket, where a cycle of them would live on without a
process. `memfd_secret` and `io_uring` hold memory that no account of the container names; keys belong to a user, not to a process.
Pairs of connected sockets and pipes are left: threads, asyncio and multiprocessing need no more.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_FILTER = 2
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE = 0, 4
_FOREIGN = 0x40000000
"""On x86-64, calls from here on are those of another binary interface, with numbers of its own."""

# socket, sendmsg, sendmmsg, userfaultfd, add_key, request_key, keyctl; io_uring and memfd_secret have the same numbers everywhere.
_EVERYWHERE = (425, 426, 427, 447)
_MACHINES = {
    "x86_64": (0xC000003E, (41, 46, 307, 323, 248, 249, 250, *_EVERYWHERE)),
    "aarch64": (0xC00000B7, (198, 211, 269, 282, 217, 218, 219, *_EVERYWHERE)),
}


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def filter_code(machine: str) -> bytes:
    """The filter for a machine as the kernel takes it; empty where its numbers are not known."""
    if machine not in _MACHINES:
        return b""
    architecture, refused = _MACHINES[machine]
    # Each test jumps over so many steps if it holds, else over so many; the last two steps refuse and allow.
    tests = len(refused) + 1
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 0, tests + 2, architecture),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, tests, 0, _FOREIGN),
    ]
    steps += [(_EQUAL, tests - 1 - index, 0, number) for index, number in enumerate(refused)]
    steps += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _REFUSE)]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def confine() -> None:
    """Put the filter over this process and all that it will start, for good. Raises OSError where the kernel will not."""
    code = filter_code(platform.machine())
    if not code:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "system calls could not be refused")
