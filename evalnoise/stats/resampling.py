"""The engine under the bootstrap: sums of integer rows over rows drawn with replacement.

Rows that are equal are one pattern. A resample draws how many rows fall on each of the common patterns from a multinomial, which
costs the same however many rows they have; what falls on the rare ones is drawn row by row, with several columns packed into one
64-bit word, so that one look-up and one addition sum them all. Which pattern counts as common follows from the rows alone: one
that has more rows than a multinomial's entry costs in single draws, or every one where there are few patterns. Sums are sums of
integers, so no order of summation shows in them.

Random streams are keyed by (seed, key, block of resamples), and a block is always drawn whole: the first m of n resamples are the
same numbers as m resamples, for any number of threads. The size of a block follows from the rows too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evalnoise.stats.patterns import distinct_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Words = NDArray[np.uint64]
Progress = Callable[[int, int], None]
"""Called from the caller's thread with the resamples done and all of them, time and again, and at the end."""

BLOCK = 64
"""Resamples per random stream where all patterns are common."""
FEW_PATTERNS = 24
"""With so many patterns or fewer all are common."""

# All of the following are part of the result: other numbers give other resamples.
_LARGEST_BLOCK = 1024
_BLOCK_WORK = 1 << 20
_PIECE = 1 << 16
_PAIRED = 1 << 8
_HALVES = 1 << 12
_ENTRY, _DRAW, _WORD = 110, 5, 2
"""Nanoseconds, about: an entry of a multinomial, a random row, its look-up and addition for each word."""
_COMMON, _MIXED = 0, 2

_MANTISSA = 53
_THREADS = 4
_SHARES = 8
_WORTH_THREADS = 1 << 21


def finite_rows(values: ArrayLike) -> Floats:
    """Values as float64 of shape (N, M) with N, M >= 1 and nothing but finite numbers; ValueError for anything else."""
    rows = np.asarray(values, dtype=np.float64)
    if rows.ndim != 2 or rows.size == 0:
        raise ValueError(f"values need a shape (N, M) with something in it, not {rows.shape}")
    if not np.isfinite(rows).all():
        task, column = (int(i) for i in np.argwhere(~np.isfinite(rows))[0])
        raise ValueError(
            f"row {task}, column {column}: {rows[task, column]} is not a number that can be averaged; leave the task out"
        )
    return rows


def fixed_point(rows: Floats) -> tuple[Floats, Ints]:
    """Columns (N, M) as integers times powers of two 2^-e (M,), such that no sum of N rows leaves float64's exact integers.

    Columns of integers stay as they are; others are rounded at the last bit that all such sums have room for.
    """
    largest = np.abs(rows).max(axis=0)
    bits = np.frexp(largest)[1].astype(np.int64) + len(rows).bit_length()
    whole = (rows == np.rint(rows)).all(axis=0) & (bits <= _MANTISSA)
    exponents = np.where(whole | (largest == 0), 0, _MANTISSA - bits)
    # Adding 0 makes a positive zero of a negative one.
    return np.rint(np.ldexp(rows, exponents)) + 0.0, exponents


def distinct(rows: Floats) -> tuple[Floats, Ints]:
    """Distinct rows (P, M) and how many there are of each (P,); the most frequent first, equally frequent ones ascending."""
    patterns, _, counts = distinct_rows(rows)
    order = np.argsort(-counts, kind="stable")
    return patterns[order], counts[order]


@dataclass(frozen=True, slots=True)
class _Plan:
    """How the resamples of some rows are drawn."""

    n: int
    """Rows, and draws per resample."""
    common: Floats
    """Common patterns (H, M)."""
    shares: Floats
    """Share of the rare rows, if there are any, then of each common pattern."""
    tables: tuple[Words, ...]
    """For each word its value for every rare row, each of shape (rare,)."""
    places: tuple[tuple[int, int, int], ...]
    """Word, shift and bits of each column; no bits where all rare rows have the same value."""
    lows: Floats
    """What was subtracted of each column before it was packed, (M,)."""
    rare: int
    """Rare rows."""
    block: int
    """Resamples per stream."""

    @property
    def purpose(self) -> int:
        return _MIXED if self.rare else _COMMON

    @property
    def work(self) -> int:
        """Cost of one resample in draws, about."""
        return self.rare + len(self.common) * _ENTRY // (_DRAW + _WORD)


def _plan(rows: Floats) -> _Plan:
    patterns, counts = distinct(rows)
    n = len(rows)
    places, words = _places(patterns, n)
    limit = _ENTRY // (_DRAW + _WORD * words)
    h = len(counts) if len(counts) <= FEW_PATTERNS else int(np.searchsorted(-counts, -limit))
    rare = int(counts[h:].sum())
    lows = patterns.min(axis=0)
    shares = counts[:h] / n
    work = rare + h * _ENTRY // (_DRAW + _WORD)
    room = max(1, min(_LARGEST_BLOCK, _BLOCK_WORK // work))
    return _Plan(
        n=n,
        common=patterns[:h],
        shares=np.concatenate([[rare / n], shares]) if rare else shares,
        tables=tuple(_pack(patterns[h:] - lows, counts[h:], places, word) for word in range(words)) if rare else (),
        places=places,
        lows=lows,
        rare=rare,
        block=1 << (room.bit_length() - 1) if rare else BLOCK,
    )


def _places(patterns: Floats, n: int) -> tuple[tuple[tuple[int, int, int], ...], int]:
    """Word, shift and bits of each column, such that n rows add up without a carry into the next one; and the number of words."""
    word = shift = 0
    places = []
    for span in patterns.max(axis=0) - patterns.min(axis=0):
        bits = (int(span) * n).bit_length()
        if shift + bits > 64:
            word, shift = word + 1, 0
        places.append((word, shift, bits))
        shift += bits
    return tuple(places), word + 1


def _pack(values: Floats, counts: Ints, places: tuple[tuple[int, int, int], ...], word: int) -> Words:
    packed = np.zeros(len(values), dtype=np.uint64)
    for column, (place, shift, bits) in zip(values.T, places, strict=True):
        if place == word and bits:
            packed |= column.astype(np.uint64) << np.uint64(shift)
    return np.repeat(packed, counts)


class _Scratch(threading.local):
    """Arrays that each thread uses again for every piece: memory fresh from the system costs more than the draws."""

    def __init__(self) -> None:
        self.index = np.empty(_PIECE, dtype=np.intp)
        self.word = np.empty(_PIECE, dtype=np.uint64)


def resampled_sums(
    rows: Floats,
    *,
    resamples: int,
    seed: int,
    key: tuple[int, ...] = (),
    threads: int | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Sums over N rows drawn with replacement, shape (resamples, M), for integers `rows` (N, M) from `fixed_point`.

    Args:
        rows: Integers, such that no sum of N of them leaves float64's exact integers.
        resamples: Number of resamples.
        seed: Seed, 0 or more.
        key: What sets these streams apart from others of the same seed.
        threads: Threads; None: as the machine has processors, at most 4, and one for little work. No result depends on it.
        progress: Called time and again; see `Progress`.
    """
    check_draws(resamples, seed)
    plan = _plan(rows)
    sums = np.empty((resamples, rows.shape[1]))
    scratch = _Scratch()
    starts = range(0, resamples, plan.block)

    def draw(start: int) -> int:
        generator = stream(seed, (*key, plan.purpose), start // plan.block)
        found = _block(plan, generator, scratch)
        sums[start : start + plan.block] = found[: resamples - start]
        return min(start + plan.block, resamples)

    used = _threads(plan.work * resamples) if threads is None else threads
    if used <= 1 or len(starts) == 1:
        for start in starts:
            _report(progress, draw(start), resamples)
        return sums
    # A few blocks at a time, because handing one over costs as much as drawing a small one.
    share = max(1, len(starts) // (used * _SHARES))

    def draw_several(first: int) -> int:
        return [draw(start) for start in starts[first : first + share]][-1]

    with ThreadPoolExecutor(used) as pool:
        for done in pool.map(draw_several, range(0, len(starts), share)):
            _report(progress, done, resamples)
    return sums


def _report(progress: Progress | None, done: int, resamples: int) -> None:
    if progress is not None:
        progress(done, resamples)


def _threads(work: int) -> int:
    if work < _WORTH_THREADS:
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(_THREADS, usable)


def check_draws(resamples: int, seed: int) -> None:
    """Refuse numbers that are no number of resamples, or no seed."""
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, not {resamples}")
    if seed < 0:
        raise ValueError(f"a seed is 0 or more, not {seed}")


def stream(seed: int, key: tuple[int, ...], block: int) -> np.random.Generator:
    """The random stream of one block."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(*key, block))))


def _block(plan: _Plan, generator: np.random.Generator, scratch: _Scratch) -> Floats:
    """Sums of one block of resamples (block, M)."""
    drawn = generator.multinomial(plan.n, plan.shares, size=plan.block)
    if not plan.rare:
        return np.asarray(drawn.astype(np.float64) @ plan.common)
    rare = drawn[:, 0]
    words = _rare_sums(plan, generator, rare, scratch)
    sums = drawn[:, 1:].astype(np.float64) @ plan.common
    for m, (word, shift, bits) in enumerate(plan.places):
        sums[:, m] += plan.lows[m] * rare
        if bits:
            sums[:, m] += (words[word] >> np.uint64(shift)) & np.uint64((1 << bits) - 1)
    return np.asarray(sums)


def _rare_sums(plan: _Plan, generator: np.random.Generator, drawn: Ints, scratch: _Scratch) -> Words:
    """Sums of each word over `drawn` (block,) rare rows of each resample, shape (words, block)."""
    if plan.rare > _PAIRED:
        return _draw(plan.tables, generator, drawn, scratch)
    # Two rows at a time, from a table of all pairs of rows, and the odd one on its own.
    pairs = tuple(np.add.outer(table, table).ravel() for table in plan.tables)
    return _draw(pairs, generator, drawn // 2, scratch) + _draw(plan.tables, generator, drawn % 2, scratch)


def _draw(tables: tuple[Words, ...], generator: np.random.Generator, drawn: Ints, scratch: _Scratch) -> Words:
    """Sums of each table over `drawn` (block,) of its entries for each resample, shape (tables, block); drawn piece by piece."""
    ends = np.cumsum(drawn)
    starts = ends - drawn
    entries = len(tables[0])
    # Halves of a word are drawn faster, but the nearer their range is to that of the entries, the more of them are rejected.
    dtype = np.uint16 if entries <= _HALVES else np.uint32 if entries <= 1 << 32 else np.uint64
    sums = np.zeros((len(tables), len(drawn)), dtype=np.uint64)
    for low in range(0, int(ends[-1]), _PIECE):
        high = min(low + _PIECE, int(ends[-1]))
        first, last = np.searchsorted(ends, [low, high - 1], side="right")
        touched = slice(int(first), int(last) + 1)
        cuts = np.maximum(starts[touched] - low, 0)
        index, word = scratch.index[: high - low], scratch.word[: high - low]
        np.copyto(index, generator.integers(0, entries, size=high - low, dtype=dtype), casting="unsafe")
        for w, table in enumerate(tables):
            # Every index is in range: the mode only spares NumPy a copy.
            np.take(table, index, out=word, mode="clip")
            # A resample without a draw would be given the next one's first.
            sums[w, touched] += np.where(drawn[touched] > 0, np.add.reduceat(word, cuts), np.uint64(0))
    return sums
