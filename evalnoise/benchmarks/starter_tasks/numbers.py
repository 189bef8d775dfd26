"""Starter tasks about numbers: integers, floats with a tolerance, and one that is slow on purpose."""

from __future__ import annotations

import math
from itertools import pairwise

from evalnoise.benchmarks.starter_tasks.declare import task


@task(
    "01-alternating-digits",
    inputs=[(0,), (7,), (12,), (123,), (9081,), (-5,), (-123,), (1010,), (999999,), (-9000000001,), (123456789012345678901,)],
)
def alternating_digits(number: int) -> int:
    """Add up the decimal digits of a number with alternating signs.

    The last digit counts positive, the one before it negative, and so on. For a negative number the sum of its
    digits, made the same way, is negated. alternating_digits(123) is 2, from 3 - 2 + 1, and
    alternating_digits(-12) is -1.
    """
    total = 0
    for place, digit in enumerate(reversed(str(abs(number)))):
        total += int(digit) if place % 2 == 0 else -int(digit)
    return -total if number < 0 else total


@task(
    "08-savings-balance",
    atol=1e-6,
    inputs=[
        (0.0, 0.0, 0.0, 12),
        (100.0, 0.0, 0.05, 1),
        (100.0, 10.0, 0.0, 3),
        (50.0, 10.0, 0.01, 12),
        (99.5, 0.25, 0.02, 2),
        (1000.0, -50.0, 0.0, 25),
        (1000.0, -50.0, 0.1, 4),
        (100.0, -1.0, 0.0, 1),
        (250.75, 33.1, 0.003, 60),
        (-20.0, 5.0, 0.5, 10),
        (100.0, 5.0, 0.02, 0),
    ],
)
def savings_balance(start: float, deposit: float, rate: float, months: int) -> float:
    """Balance of an account after some months.

    Each month, in this order: the deposit is added (it may be negative); then, if the balance is at least 100,
    interest of `rate` times the balance is added; otherwise a fee of 2 is taken. With 0 months the balance is
    `start`.
    """
    balance = start
    for _ in range(months):
        balance += deposit
        if balance >= 100:
            balance += balance * rate
        else:
            balance -= 2
    return balance


@task(
    "15-trimmed-mean",
    atol=1e-9,
    inputs=[
        ([1.0, 2.0, 3.0], 0),
        ([1.0, 2.0, 3.0], 1),
        ([5.0, 1.0, 100.0, 2.0, 3.0], 1),
        ([0.1, 0.2, 0.3, 0.4], 2),
        ([], 0),
        ([4.5], 1),
        ([-1.5, -1.5, 7.25, 8.0, 9.5, 1e6], 1),
        ([0.1] * 10, 3),
        ([3.0, 1.0, 2.0], 5),
        ([1e-9, 2e-9, -1e-9], 0),
        ([10.0, -10.0, 0.5, 0.25], 1),
    ],
)
def trimmed_mean(values: list[float], cut: int) -> float:
    """Mean of the values that are left when the `cut` smallest and the `cut` largest are taken away.

    If nothing is left, the result is 0.0.
    """
    left = sorted(values)[cut : len(values) - cut] if 2 * cut < len(values) else []
    return math.fsum(left) / len(left) if left else 0.0


@task(
    "22-split-bill",
    inputs=[(100, 3), (0, 4), (1, 1), (5, 7), (999, 10), (1000, 10), (1001, 10), (7, 2), (123456, 9), (2, 3), (10**20, 6)],
)
def split_bill(cents: int, people: int) -> list[int]:
    """Split an amount in cents among people so that the shares add up exactly and differ by at most one cent.

    The larger shares come first: split_bill(100, 3) is [34, 33, 33].
    """
    share, rest = divmod(cents, people)
    return [share + 1] * rest + [share] * (people - rest)


@task(
    "29-square-products",
    inputs=[(0,), (1,), (4,), (9,), (10,), (50,), (120,), (260,), (500,), (1500,), (2200,)],
)
def square_products(limit: int) -> int:
    """Count the pairs a < b of positive integers up to and including `limit` whose product is a perfect square.

    Up to 9 there are four: 1 and 4, 1 and 9, 2 and 8, 4 and 9.
    """
    # Every pair is tried: this solution is slow on purpose.
    count = 0
    for first in range(1, limit + 1):
        for second in range(first + 1, limit + 1):
            product = first * second
            if math.isqrt(product) ** 2 == product:
                count += 1
    return count


@task(
    "36-polyline-length",
    atol=1e-9,
    inputs=[
        ([], "open"),
        ([(0.0, 0.0)], "closed"),
        ([(0.0, 0.0), (3.0, 4.0)], "open"),
        ([(0.0, 0.0), (3.0, 4.0)], "closed"),
        ([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)], "closed"),
        ([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)], "open"),
        ([(1.5, -2.5), (1.5, -2.5), (4.5, 1.5)], "closed"),
        ([(0.1, 0.2), (0.3, 0.4), (0.5, 0.7)], "open"),
        ([(-1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (1.0, -1.0)], "closed"),
        ([(1e3, 1e3), (-1e3, 1e3), (0.0, 0.0)], "closed"),
    ],
)
def polyline_length(points: list[tuple[float, float]], kind: str) -> float:
    """Length of the line that joins the points in order.

    The kind is ``open`` or ``closed``; a closed line also returns from the last point to the first. Fewer than two
    points have length 0.0.
    """
    total = 0.0
    for (x0, y0), (x1, y1) in pairwise(points):
        total += math.hypot(x1 - x0, y1 - y0)
    if kind == "closed" and points:
        total += math.hypot(points[0][0] - points[-1][0], points[0][1] - points[-1][1])
    return total


@task(
    "43-negative-binary",
    inputs=[(0,), (1,), (-1,), (2,), (3,), (-2,), (6,), (-13,), (100,), (-255,), (2**40 + 1,)],
)
def negative_binary(number: int) -> str:
    """Write an integer in base -2, with the digits 0 and 1 and no sign.

    2 is "110" (4 - 2), -1 is "11" (-2 + 1), 0 is "0".
    """
    if number == 0:
        return "0"
    digits = ""
    while number != 0:
        bit = number % 2
        digits = str(bit) + digits
        number = (number - bit) // -2
    return digits
