"""What unmeasured cells and absent tasks could hide: they are often missing because of what they would have been.

A provider that gives out on hard prompts leaves failures out, and so does a suite that lost the tasks which NEW fails. A pass must
therefore hold with all cells that NEW has not measured counted as failures, and with all of BASE's counted as passes too, those of
tasks that only the other arm has among them. No number that is printed as a score counts them so.
"""

from __future__ import annotations

import numpy as np

from evalnoise.stats.gates.side import Side


def filled(side: Side, score: float) -> Side:
    """The side with this score in every unmeasured cell."""
    scores = np.where(side.measured, side.scores, score)
    return Side(scores=scores, measured=np.ones_like(side.measured), in_order=side.in_order)


def lacks(side: Side) -> bool:
    """Whether a cell has no outcome, be it unmeasured or of a task that the arm's suite does not have."""
    return not side.measured.all()


def worst_cases(new: Side, base: Side) -> list[tuple[Side, Side]]:
    """What a pass must hold in: the cells that NEW lacks as failures, and with it those that BASE lacks as passes, if any."""
    failed = filled(new, 0.0)
    cases = [(failed, base)] if lacks(new) else []
    # Both, because cells that are all alike also make an arm look less noisy.
    return [*cases, (failed, filled(base, 1.0))] if lacks(base) else cases


def hidden_loss(new: Side, base: Side, limit: float | None) -> str:
    """In words, that a pass does not hold; `limit` is the largest of the loss in the `worst_cases`."""
    up_to = "it would be no pass" if limit is None else f"the loss could be up to {limit:.4f}"
    remedies = ["measure them"] if _unmeasured(new, base) else []
    remedies += ["run both arms on one suite"] if _absent(new, base) else []
    return f"{_lacking(new, base)}; {_were(new, base, 'failures', 'passes')}, {up_to}; {', and '.join(remedies)}"


def hidden_gain(new: Side, base: Side) -> str:
    """In words, that a block may be due to cells that are missing."""
    return f"{_lacking(new, base)}; {_were(new, base, 'passes', 'failures')}, it would not be a block"


def _were(new: Side, base: Side, of_new: str, of_base: str) -> str:
    if lacks(new) and lacks(base):
        return f"were NEW's {of_new} and BASE's {of_base}"
    return f"were they {of_new if lacks(new) else of_base}"


def _lacking(new: Side, base: Side) -> str:
    return "; ".join([*_unmeasured(new, base), *_absent(new, base)])


def _unmeasured(new: Side, base: Side) -> list[str]:
    """At most one text, about the cells of an arm's own tasks."""
    found: list[str] = []
    for name, side in (("NEW", new), ("BASE", base)):
        own = side.measured[side.has]
        if missing := own.size - int(np.count_nonzero(own)):
            found.append(f"{missing} of {own.size}{'' if found else ' cells'} of {name}")
    return [f"{' and '.join(found)} are unmeasured"] if found else []


def _absent(new: Side, base: Side) -> list[str]:
    """A text for each arm whose suite does not have all tasks."""
    found = []
    for name, other, side in (("NEW", "BASE", new), ("BASE", "NEW", base)):
        if absent := int(np.count_nonzero(~side.has)):
            found.append(f"{absent} {'task' if absent == 1 else 'tasks'} of {other} {'is' if absent == 1 else 'are'} not in {name}")
    return found
