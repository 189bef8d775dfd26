"""Do the runs of two arms look like copies? Independent runs agree by chance alone, and how often that is, is known.

Given the scores of a task in one arm, independent runs of the other get the same scores, in any order, with a known chance at most,
whatever its rates; and given those, they stand in any order, so that run r of one agrees with run r of the other by chance. The two
are independent of each other. Copies agree in the first whatever their order, and in the second also where some were changed.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import gammaln, xlogy

from evalnoise.stats.gates.cmh import cmh_test
from evalnoise.stats.gates.side import Side
from evalnoise.stats.variance import Floats, Ints

CHANCE = 1e-6
"""Independent runs are taken for copies with at most this chance."""
FAR_ABOVE = 0.25
"""So much of the room above what chance makes must be taken up: with many runs a little in common is no copy."""
MANY_TASKS = 100
MAY_BE_A_COPY = "the single runs of NEW and BASE have the same score in every task: NEW may be a copy of BASE"


def look_like_copies(a: Side, b: Side) -> bool:
    """Whether two arms, row i being the same task, agree as independent runs would with a chance of at most `CHANCE`.

    By Fisher's way of putting two p together: their product x has P(product <= x) = x (1 - log x) at most.
    """
    product = _p_same_scores(a, b)
    if a.in_order and b.in_order:
        product *= _p_same_runs(a, b)
    return product <= 0 or product * (1 - math.log(product)) < CHANCE


def single_copy(a: Side, b: Side) -> bool:
    """Whether both arms have one run per task and agree in all of many tasks, that do not all have the same score."""
    if a.n_tasks < MANY_TASKS or int(a.runs.max()) > 1 or int(b.runs.max()) > 1:
        return False
    return bool(np.array_equal(a.means, b.means) and np.ptp(a.means) > 0)


def _p_same_scores(a: Side, b: Side) -> float:
    """P of as many tasks with the same scores in both arms, in any order, given those of arm a; 1 where it is nothing special."""
    rows = np.flatnonzero((a.runs == b.runs) & a.varied)
    one, other = a.take(rows), b.take(rows)
    if a.binary and b.binary:
        same, chances = one.passes == other.passes, _at_most(np.stack([one.passes, one.runs - one.passes], axis=1))
    else:
        same, chances = np.zeros(len(rows), dtype=bool), np.zeros(len(rows))
        for i in range(len(rows)):
            scores, theirs = (np.sort(side.scores[i][side.measured[i]]) for side in (one, other))
            same[i] = np.array_equal(scores, theirs)
            chances[i] = _at_most(np.unique(scores, return_counts=True)[1][None])[0]
    seen = int(np.count_nonzero(same))
    return _tail(chances, seen) if _far(seen, math.fsum(chances), len(chances)) else 1.0


def _at_most(counts: Ints) -> Floats:
    """Largest chance that n independent runs have these counts, (G, K), by score: n! prod (c/n)^c / c!, with c/n for the rates."""
    n = counts.sum(axis=1)
    logs = gammaln(n + 1) + np.sum(xlogy(counts, counts / n[:, None]) - gammaln(counts + 1), axis=1)
    return np.asarray(np.exp(np.minimum(logs, 0.0)))


def _tail(chances: Floats, seen: int) -> float:
    """P of at least `seen` successes with these chances."""
    mass = np.zeros(len(chances) + 1)
    mass[0] = 1.0
    for done, chance in enumerate(chances.tolist(), start=1):
        mass[1 : done + 1] = mass[1 : done + 1] * (1 - chance) + mass[:done] * chance
        mass[0] *= 1 - chance
    return min(1.0, math.fsum(mass[seen:]))


def _p_same_runs(a: Side, b: Side) -> float:
    """P of so much agreement run by run: of passes in both, each task's runs standing in any order; 1 where it is nothing special.

    Scores count as passes where they are above the mean of their task.
    """
    width = min(a.scores.shape[1], b.scores.shape[1])
    known = a.measured[:, :width] & b.measured[:, :width]
    both = np.where(known, a.scores[:, :width], 0.0), np.where(known, b.scores[:, :width], 0.0)
    n = known.sum(axis=1)
    centre = (both[0].sum(axis=1) + both[1].sum(axis=1)) / np.maximum(2 * n, 1)
    one, other = (known & (scores > centre[:, None]) for scores in both)
    ka, kb, seen = (np.asarray(cells.sum(axis=1), dtype=np.int64) for cells in (one, other, one & other))
    expected = math.fsum(ka * kb / np.maximum(n, 1))
    if not _far(int(seen.sum()), expected, int(np.minimum(ka, kb).sum())):
        return 1.0
    # The same as the test that the runs in which one arm passes pass more often in the other.
    found = cmh_test(seen, ka, kb - seen, n - ka)
    return 1.0 if found.p_greater is None or found.point is None else min(1.0, found.p_greater + found.point / 2)


def _far(seen: int, expected: float, most: int) -> bool:
    return seen > expected and seen - expected >= FAR_ABOVE * (most - expected)
