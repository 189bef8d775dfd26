"""Starter tasks that read strict formats; most of them must raise an exception for what is not in the format."""

from __future__ import annotations

import re

from evalnoise.benchmarks.starter_tasks.declare import task


@task(
    "07-read-duration",
    inputs=[
        ("5s",),
        ("1h",),
        ("1h30m",),
        ("2h0m15s",),
        ("90m",),
        ("",),
        ("10",),
        ("5m1h",),
        ("1h 5m",),
        ("-5s",),
        ("1h1h",),
        ("007s",),
    ],
)
def read_duration(text: str) -> int:
    """Seconds of a duration such as ``1h30m``, ``90m`` or ``2h0m15s``.

    Hours, minutes and seconds come in this order; each is optional, but one must be there; each is a whole number
    of any size, with no sign and no space. Raise ValueError for everything else.
    """
    match = re.fullmatch(r"(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+)s)?", text)
    if not match or not text:
        raise ValueError(text)
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


@task(
    "14-mean-of-known",
    atol=1e-9,
    inputs=[
        ([1.0],),
        ([1.0, None, 3.0],),
        ([None],),
        ([],),
        ([0.0, 0.0],),
        ([None, 0.0],),
        ([0.1, 0.2, 0.3],),
        ([-5.5, 5.5, None],),
        ([1e10, None, 1.0],),
        ([2.0, 4.0, 9.0],),
    ],
)
def mean_of_known(values: list[float | None]) -> float:
    """Mean of the values that are not None. Raise ValueError if there is none."""
    known = [value for value in values if value is not None]
    if not known:
        raise ValueError("no known value")
    return sum(known) / len(known)


@task(
    "21-read-roman",
    inputs=[
        ("I",),
        ("IV",),
        ("IX",),
        ("XLII",),
        ("MCMXCIV",),
        ("MMMCMXCIX",),
        ("IIII",),
        ("VX",),
        ("IC",),
        ("",),
        ("xi",),
        ("XIX",),
    ],
)
def read_roman(text: str) -> int:
    """Value of a Roman numeral from I (1) to MMMCMXCIX (3999) in capital letters.

    Only the usual spelling of a number is allowed: 4 is IV and not IIII, 99 is XCIX and not IC. Raise ValueError
    for everything else, the empty text too.
    """
    values = (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1)
    letters = ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I")
    for number in range(1, 4000):
        rest = number
        spelled = ""
        for value, sign in zip(values, letters, strict=True):
            spelled += sign * (rest // value)
            rest %= value
        if spelled == text:
            return number
    raise ValueError(text)


@task(
    "28-unpack-frames",
    inputs=[
        (b"",),
        (b"\x00",),
        (b"\x01a",),
        (b"\x03abc\x00\x02de",),
        (b"\x02a",),
        (b"\x05hello\x05world",),
        (b"\x01",),
        (b"\x00\x00\x00",),
        (b"\x04\xff\xfe\x00\x01",),
        (b"\x03abc\x04abc",),
        (b"\x01\x01\x01\x02\x01",),
    ],
)
def unpack_frames(data: bytes) -> list[bytes]:
    """Unpack frames: each is one byte that gives the length, 0 to 255, and then so many bytes of content.

    Return the contents in order. Raise ValueError if the data ends within a frame.
    """
    frames = []
    place = 0
    while place < len(data):
        end = place + 1 + data[place]
        if end > len(data):
            raise ValueError("the data ends within a frame")
        frames.append(data[place + 1 : end])
        place = end
    return frames


@task(
    "35-stack-machine",
    inputs=[
        ([],),
        (["1"],),
        (["1", "2", "add"],),
        (["5", "3", "sub"],),
        (["2", "dup", "mul"],),
        (["1", "2", "swap"],),
        (["1", "2", "swap", "sub"],),
        (["add"],),
        (["1", "add"],),
        (["-4", "2", "mul"],),
        (["1", "jump"],),
        (["3", "dup", "dup", "add", "swap"],),
    ],
)
def stack_machine(program: list[str]) -> list[int]:
    """Run a program for a stack of integers and return the stack, its top last.

    A word that is a decimal integer, with or without a leading minus, is pushed. ``add``, ``sub`` and ``mul``
    replace the two topmost values a, b (b on top) by a + b, a - b, a * b. ``dup`` pushes the top once more,
    ``swap`` exchanges the two topmost. Raise IndexError if the stack holds too few values, ValueError for an
    unknown word.
    """
    stack: list[int] = []
    for word in program:
        if word.removeprefix("-").isdecimal():
            stack.append(int(word))
            continue
        if word not in {"add", "sub", "mul", "dup", "swap"}:
            raise ValueError(word)
        top = stack.pop()
        if word == "dup":
            stack += [top, top]
            continue
        below = stack.pop()
        results = {"add": [below + top], "sub": [below - top], "mul": [below * top], "swap": [top, below]}
        stack += results[word]
    return stack


@task(
    "42-bit-fields",
    inputs=[
        (0, []),
        (0, [1, 2]),
        (5, [3]),
        (5, [2]),
        (5, [1, 1, 1]),
        (6, [1, 2]),
        (255, [4, 4]),
        (256, [4, 4]),
        (1, []),
        (0b1011010, [3, 0, 4]),
        (2**100 + 3, [2, 98, 1]),
        (-1, [8]),
    ],
)
def bit_fields(number: int, widths: list[int]) -> list[int]:
    """Split a number of zero or more into fields of so many bits; the first field has the lowest bits.

    bit_fields(6, [1, 2]) is [0, 3]. A field of width 0 is 0. Raise OverflowError if the number is negative or needs
    more bits than there are.
    """
    fields = []
    for width in widths:
        fields.append(number & ((1 << width) - 1))
        number >>= width
    if number != 0:
        raise OverflowError("the number does not fit")
    return fields


@task(
    "49-compare-versions",
    inputs=[
        ("1.0", "1.0"),
        ("1.9", "1.10"),
        ("2", "1.99.99"),
        ("1.0", "1"),
        ("1.0-rc1", "1.0"),
        ("1.0-rc2", "1.0-rc10"),
        ("1.0.1-rc1", "1.0"),
        ("1.0-rc1", "1-rc1"),
        ("1..0", "1.0"),
        ("1.0", "1.0-beta"),
        ("", "1"),
        ("01.2", "1.2"),
    ],
)
def compare_versions(first: str, second: str) -> int:
    """Compare two versions: -1 if the first is older, 1 if it is newer, 0 if they are equal.

    A version is whole numbers joined by dots, compared from the left; missing numbers count as 0. It may end in
    ``-rc`` and a number: a release candidate, which is older than the release of the same numbers, and candidates
    are ordered by their number. Raise ValueError if either text is not of this form.
    """
    keys = []
    for text in (first, second):
        match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)*)(?:-rc([0-9]+))?", text)
        if not match:
            raise ValueError(text)
        numbers = [int(part) for part in match.group(1).split(".")]
        while numbers and numbers[-1] == 0:
            numbers.pop()
        candidate = (0, int(match.group(2))) if match.group(2) else (1, 0)
        keys.append((numbers, candidate))
    return (keys[0] > keys[1]) - (keys[0] < keys[1])
