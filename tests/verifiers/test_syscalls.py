"""The filter of system calls, run here as the kernel runs it: what is refused, on which machine."""

from __future__ import annotations

import errno
import struct

import pytest

from verifiers.supervisor.syscalls import filter_code

ALLOW, REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM
X86_64, I386, AARCH64, ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028


def verdict(machine: str, architecture: int, number: int, *arguments: int) -> int:
    """What the filter says of a call."""
    values = [*arguments, *[0] * (6 - len(arguments))]
    facts = struct.pack("=IIQ6Q", number, architecture, 0, *(value % 2**64 for value in values))
    steps = list(struct.iter_unpack("=HBBI", filter_code(machine)))
    place = accumulator = 0
    while True:
        operation, if_true, if_false, value = steps[place]
        place += 1
        if operation == 0x20:
            (accumulator,) = struct.unpack_from("=I", facts, value)
        elif operation in (0x15, 0x35):
            holds = accumulator == value if operation == 0x15 else accumulator >= value
            place += if_true if holds else if_false
        else:
            assert operation == 0x06
            return value


NUMBERS = {
    # name: x86-64, aarch64
    "socket": (41, 198),
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "io_setup": (206, 0),
    "ptrace": (101, 117),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_secret": (447, 447),
}
ALLOWED = {"read": (0, 63), "write": (1, 64), "clone": (56, 220), "execve": (59, 221), "recvmsg": (47, 212), "pipe2": (293, 59)}
MACHINES = [("x86_64", X86_64, 0), ("aarch64", AARCH64, 1)]


@pytest.mark.parametrize(("machine", "architecture", "column"), MACHINES)
def test_calls(machine: str, architecture: int, column: int) -> None:
    for numbers in NUMBERS.values():
        assert verdict(machine, architecture, numbers[column]) == REFUSE
    for numbers in ALLOWED.values():
        assert verdict(machine, architecture, numbers[column]) == ALLOW
    assert verdict(machine, architecture, 999) == ALLOW
    for other in {X86_64, I386, AARCH64, ARM} - {architecture}:
        assert verdict(machine, other, ALLOWED["read"][column]) == REFUSE, "calls of another interface have other numbers"
    assert verdict(machine, architecture, 0x40000000 + ALLOWED["read"][column]) == REFUSE


@pytest.mark.parametrize(("machine", "architecture", "column"), MACHINES)
def test_arguments(machine: str, architecture: int, column: int) -> None:
    socketpair, ioctl, fcntl = ((53, 199)[column], (16, 29)[column], (72, 25)[column])
    assert verdict(machine, architecture, socketpair, 1, 5) == ALLOW
    assert verdict(machine, architecture, socketpair, 2**32 + 1) == ALLOW, "the kernel looks at the lower half"
    for family in (0, 2, 10, 16, 30, 2**32 + 30):
        assert verdict(machine, architecture, socketpair, family, 1) == REFUSE
    assert verdict(machine, architecture, ioctl, 3, 0x5423) == REFUSE
    assert verdict(machine, architecture, ioctl, 3, 2**32 + 0x5423) == REFUSE
    assert verdict(machine, architecture, ioctl, 0x5423, 0x5401) == ALLOW
    for command, said in ((1036, REFUSE), (1038, REFUSE), (2**32 + 1036, REFUSE), (1033, ALLOW), (1031, ALLOW), (3, ALLOW)):
        assert verdict(machine, architecture, fcntl, 3, command) == said


def test_a_machine_whose_numbers_are_not_known_has_no_filter() -> None:
    assert filter_code("riscv64") == b""
