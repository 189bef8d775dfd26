"""How many tasks an interval over new tasks really rests on, and what its reader must know where they are few."""

from __future__ import annotations

import numpy as np

from evalnoise.stats.variance import Floats

FEW_CARRIERS = 15
"""An interval that rests on fewer tasks covers less often than it says, though the benchmark be large."""
FEW_TASKS = 30
"""Under so many tasks the bootstrap covers less often than it says."""


def carriers(parts: Floats) -> float:
    """Effective number of tasks that carry a mean, (sum u)^2 / sum u^2: n where all give alike, 0 where they cancel out.

    `parts`, (n,), is what each task gives.
    """
    squares = float(parts @ parts)
    return float(np.sum(parts)) ** 2 / squares if squares else 0.0


def few_note(*parts: Floats) -> str:
    """What the reader of a percentile interval must know of the tasks that carry it.

    Each of `parts` is what every task gives, (n,), and the fewest carriers count: for a score its passes and its failures, for a
    difference its sizes. In simulations such intervals missed a side in up to 90 % of studies where a few tasks carry them, and
    in about 4 % a side at most where 15 or more of at least 30 do: `python -m perf.coverage --parts ladder,components`.
    """
    number, tasks = min(carriers(one) for one in parts), len(parts[0])
    if number < FEW_CARRIERS:
        named = f"about {number:.0f} of {tasks} tasks" if number >= 1.5 else "hardly more than one task"
        return f"it rests on {named}: under {FEW_CARRIERS} the interval covers less often than it says"
    return "" if tasks >= FEW_TASKS else f"{tasks} tasks: under {FEW_TASKS} the interval covers less often than it says"
