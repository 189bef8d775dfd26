"""Two arms of a gate, drawn from pass rates."""

from __future__ import annotations

import numpy as np

from evalnoise.stats.gates.side import Side, counted_side

N = 164


def rates(seed=0, n=N):
    """About as the published live condition: mostly always or never, the rest from a Beta distribution; w about 0.03."""
    rng = np.random.default_rng(seed)
    return np.where(rng.random(n) < 0.3, rng.beta(0.5, 0.3, n), (rng.random(n) < 0.8).astype(float))


def arm(rng, p, runs):
    return counted_side(rng.binomial(runs, p), np.full(len(p), runs))


def cut(side, absent):
    """The side of a suite that does not have these tasks, (N,)."""
    measured = side.measured & ~absent[:, None]
    return Side(scores=np.where(measured, side.scores, 0.0), measured=measured, in_order=side.in_order, absent=absent)
