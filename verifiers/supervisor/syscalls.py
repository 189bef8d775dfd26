"""Takes away the system calls through which a candidate could outlive its processes or leave word. Standard library alone.

The engine's own filter stays in force; this one is added to it. Without `socket` there is no address to take, no name to leave and
no counter of a network to move. Without `sendmsg` no file can be put into a socket, where a cycle of them would live on without a
process. `memfd_secret` and `io_uring` hold memory that no account of the container names; keys belong to a user, not to a process;
`io_setup` draws on a number that is one for the whole machine. With `ptrace` a process can make its parent, the supervisor, the one
that traces it, who is then told of stops as if they were ends. Pairs of connected sockets and pipes are left: threads, asyncio and
multiprocessing need no more.

Of three calls some arguments are refused. To ask for a pair of sockets of an unknown family, or for another discipline of a
terminal, makes the kernel load a module, which stays and which every container can see; a hint on how long a file will live stays
with the file.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import NamedTuple

_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_FILTER = 2
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_FOREIGN = 0x40000000
"""On x86-64, calls from here on are those of another binary interface, with numbers of its own."""
_ON, _ALLOWED, _REFUSED = 0, -1, -2
"""Where a test leads: to the next step, or to one of the last two."""
_UNIX_FAMILY = 1
_SET_DISCIPLINE = 0x5423
_LIFE_HINTS = (1036, 1038)

# io_uring (three) and memfd_secret have the same numbers everywhere.
_EVERYWHERE = (425, 426, 427, 447)


class _Machine(NamedTuple):
    """Numbers of calls."""

    architecture: int
    refused: tuple[int, ...]
    """socket, sendmsg, sendmmsg, userfaultfd, add_key, request_key, keyctl, io_setup, ptrace, and those of all machines."""
    socketpair: int
    ioctl: int
    fcntl: int


_MACHINES = {
    "x86_64": _Machine(0xC000003E, (41, 46, 307, 323, 248, 249, 250, 206, 101, *_EVERYWHERE), 53, 16, 72),
    "aarch64": _Machine(0xC00000B7, (198, 211, 269, 282, 217, 218, 219, 0, 117, *_EVERYWHERE), 199, 29, 25),
}


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_char_p)]


def filter_code(machine: str) -> bytes:
    """The filter for a machine as the kernel takes it; empty where its numbers are not known."""
    if machine not in _MACHINES:
        return b""
    numbers = _MACHINES[machine]
    # Code, value, and where the step leads if the value fits and if it does not; a positive number is of steps to pass over.
    steps = [
        (_LOAD, _ARCHITECTURE, _ON, _ON),
        (_EQUAL, numbers.architecture, _ON, _REFUSED),
        (_LOAD, _NUMBER, _ON, _ON),
        (_AT_LEAST, _FOREIGN, _REFUSED, _ON),
        *((_EQUAL, number, _REFUSED, _ON) for number in numbers.refused),
        (_EQUAL, numbers.socketpair, _ON, 2),
        (_LOAD, _argument(0), _ON, _ON),
        (_EQUAL, _UNIX_FAMILY, _ALLOWED, _REFUSED),
        (_EQUAL, numbers.ioctl, _ON, 2),
        (_LOAD, _argument(1), _ON, _ON),
        (_EQUAL, _SET_DISCIPLINE, _REFUSED, _ALLOWED),
        (_EQUAL, numbers.fcntl, _ON, _ALLOWED),
        (_LOAD, _argument(1), _ON, _ON),
        (_EQUAL, _LIFE_HINTS[0], _REFUSED, _ON),
        (_EQUAL, _LIFE_HINTS[1], _REFUSED, _ALLOWED),
        (_RETURN, _ALLOW, _ON, _ON),
        (_RETURN, _REFUSE, _ON, _ON),
    ]
    to_end = {_ALLOWED: 3, _REFUSED: 2}
    code = b""
    for place, (operation, value, *jumps) in enumerate(steps):
        over = (jump if jump >= 0 else len(steps) - to_end[jump] - place for jump in jumps)
        code += struct.pack("=HBBI", operation, *over, value)
    return code


def _argument(number: int) -> int:
    """Where the lower half of an argument stands, which is all that the calls in question look at."""
    return _ARGUMENTS + 8 * number


def confine() -> None:
    """Put the filter over this process and all that it will start, for good. Raises OSError where the kernel will not."""
    code = filter_code(platform.machine())
    if not code:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    program = _Program(len(code) // 8, code)
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(program)):
        raise OSError(ctypes.get_errno(), "system calls could not be refused")
