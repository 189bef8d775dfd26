"""A cross-check of variance components: restricted maximum likelihood, by statsmodels, with every doubt of the fit kept.

Import it where it is used: statsmodels takes a second to load.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from pandas import DataFrame
from statsmodels.regression.mixed_linear_model import MixedLM

from evalnoise.stats.nested.components import ONE_EACH, ONE_TASK, Components, Level, components
from evalnoise.stats.nested.sums import from_long

NO_MAXIMUM = "the grades of a generation never differ, so the likelihood has no maximum: it rises without end as grader nears 0"
NO_MAXIMUM_RUNS = "the generations of a task never differ, so the likelihood has no maximum"
SAME = 0.01
"""Estimates that differ by less than this part of the total agree."""
_BOUNDARY: Final = 1e-4
_SPREAD: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reml:
    """A fit, or the reason why there is none to quote. Estimates are None when it failed: a failed fit is no number."""

    components: dict[Level, float] | None
    """Estimates by what they are of, as in `Components.parts`; None when the fit failed."""
    converged: bool
    """What the optimiser says of itself; True does not make a fit good."""
    failed: str
    """Why it must not be quoted: no maximum, not converged, on the boundary, or an error; empty otherwise."""
    warnings: tuple[str, ...]
    """What the optimiser warned of."""
    largest_difference: float | None
    """Largest difference from the analysis of variance, as part of its total; None when the fit failed or that is not above 0."""
    balanced: bool
    """Whether the design is balanced; in another one the two are different estimates of the same."""
    method: str = "restricted maximum likelihood (statsmodels MixedLM)"
    """How it was made."""

    @property
    def agrees(self) -> bool | None:
        """Whether it confirms the analysis of variance, to 1 % of the total; None when it failed, or the design is unbalanced."""
        return None if self.largest_difference is None or not self.balanced else self.largest_difference <= SAME


def reml(task: ArrayLike, output: ArrayLike, scores: ArrayLike, *, found: Components | None = None) -> Reml:
    """Fit score = mean + task + generation + grader with normal effects by restricted maximum likelihood. Slow: seconds to minutes.

    In a balanced design with no negative component the maximum is the analysis of variance itself. A fit on the boundary (a
    component of 0), one that did not converge, and one whose optimiser warned are reported as failed, with the reason.

    Args:
        task: Integer that names the task of each grade, shape (M,).
        output: Integer that names the output of each grade, shape (M,).
        scores: Finite scores, shape (M,).
        found: The estimates of the same data, when they were made already.
    """
    estimates = components(from_long(task, output, scores)) if found is None else found
    refused = _refused(estimates)
    if refused:
        return _failed(refused, estimates)
    tasks, outputs, values = np.asarray(task), np.asarray(output), np.asarray(scores, dtype=np.float64)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fit, parts = _fit(tasks, outputs, values, estimates)
        except (ValueError, ArithmeticError, np.linalg.LinAlgError) as error:
            return _failed(f"the fit ended with an error: {error}", estimates)
    said = tuple(dict.fromkeys(str(warning.message) for warning in caught if "Deprecation" not in warning.category.__name__))
    negative = estimates.balanced and any((part.raw or 0.0) < 0 for part in estimates.parts)
    reason = _doubt(parts, said, converged=bool(fit.converged), boundary=negative)
    if reason:
        return _failed(reason, estimates, said, converged=bool(fit.converged))
    total = estimates.total or 0.0
    raw = {part.of: part.raw or 0.0 for part in estimates.parts}
    apart = max(abs(parts[of] - raw[of]) for of in parts)
    return Reml(
        components=parts,
        converged=True,
        failed="",
        warnings=said,
        largest_difference=apart / total if total > 0 else None,
        balanced=estimates.balanced,
    )


def _refused(found: Components) -> str:
    if found.n_tasks < 2:
        return ONE_TASK
    _, generations, grades = found.squares.df
    if not generations and not grades:
        return ONE_EACH
    if grades and found.squares.grader == 0:
        return NO_MAXIMUM
    return NO_MAXIMUM_RUNS if not grades and found.squares.generation == 0 else ""


def _fit(tasks: Any, outputs: Any, values: Any, found: Components) -> tuple[Any, dict[Level, float]]:
    names = [part.of for part in found.parts]
    # The optimiser calls a variance below 0.01 the boundary, whatever the others are: so they are made large.
    unit = float(np.std(values)) / _SPREAD
    frame = DataFrame({"score": (values - np.mean(values)) / unit, "task": tasks, "output": outputs})
    nested = {"output": "0 + C(output)"} if len(names) == 3 else None
    model = MixedLM.from_formula("score ~ 1", groups="task", re_formula="1", vc_formula=nested, data=frame)
    fit = model.fit(reml=True)
    inner = [float(value) for value in np.atleast_1d(fit.vcomp)] if nested else []
    estimates = [float(np.asarray(fit.cov_re)[0, 0]), *inner, float(fit.scale)]
    return fit, {name: value * unit**2 for name, value in zip(names, estimates, strict=True)}


def _doubt(parts: dict[Level, float], said: tuple[str, ...], *, converged: bool, boundary: bool) -> str:
    """Why a fit must not be quoted, with where it stopped; empty when nothing speaks against it."""
    stopped = ", ".join(f"{of} {value:.3g}" for of, value in parts.items())
    where = f"; it stopped at {stopped}, which is no estimate"
    if not all(np.isfinite(value) for value in parts.values()):
        return "the fit is not finite" + where
    if not converged:
        return "the optimiser did not converge" + where
    if boundary or any("boundary" in line for line in said) or min(parts.values()) <= _BOUNDARY * sum(parts.values()):
        return "the fit lies on the boundary (a component of 0)" + where
    return f"the optimiser warned: {said[0]}{where}" if said else ""


def _failed(reason: str, found: Components, said: tuple[str, ...] = (), *, converged: bool = False) -> Reml:
    return Reml(
        components=None, converged=converged, failed=reason, warnings=said, largest_difference=None, balanced=found.balanced
    )
