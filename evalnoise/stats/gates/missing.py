"""What unmeasured cells could hide: cells are often missing because of what they would have been.

A provider that gives out on hard prompts leaves failures out. A pass must therefore hold with all of NEW's unmeasured cells counted
as failures, and with all of BASE's counted as passes too. No number that is printed as a score counts them so.
"""

from __future__ import annotations

import numpy as np

from evalnoise.stats.gates.side import Side


def filled(side: Side, score: float) -> Side:
    """The side with this score in every unmeasured cell."""
    scores = np.where(side.measured, side.scores, score)
    return Side(scores=scores, measured=np.ones_like(side.measured), in_order=side.in_order)


def missing_cells(side: Side) -> int:
    """Cells without an outcome."""
    return int(side.measured.size - np.count_nonzero(side.measured))


def worst_cases(new: Side, base: Side) -> list[tuple[Side, Side]]:
    """What a pass must hold in: NEW's unmeasured cells as failures, and BASE's as passes with it, where there are any."""
    failed = filled(new, 0.0)
    cases = [(failed, base)] if missing_cells(new) else []
    # Both, because cells that are all alike also make an arm look less noisy.
    return [*cases, (failed, filled(base, 1.0))] if missing_cells(base) else cases


def hidden_loss(new: Side, base: Side, limit: float | None) -> str:
    """In words, that a pass does not hold; `limit` is the largest of the loss in the `worst_cases`."""
    up_to = ", it would be no pass" if limit is None else f", the loss could be up to {limit:.4f}"
    if not missing_cells(base):
        return f"{_of(new)} cells of NEW are unmeasured; were they failures{up_to}; measure them"
    if not missing_cells(new):
        return f"{_of(base)} cells of BASE are unmeasured; were they passes{up_to}; measure them"
    cells = f"{_of(new)} cells of NEW and {_of(base)} of BASE are unmeasured"
    return f"{cells}; were NEW's failures and BASE's passes{up_to}; measure them"


def hidden_gain(new: Side, base: Side) -> str:
    """In words, that a block may be due to cells that are missing."""
    cells = f"{_of(new)} cells of NEW and {_of(base)} of BASE are unmeasured"
    return f"{cells}; were NEW's passes and BASE's failures, it would not be a block"


def _of(side: Side) -> str:
    return f"{missing_cells(side)} of {side.measured.size}"
