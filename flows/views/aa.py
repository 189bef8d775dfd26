"""One arm against itself: the smallest differences that it could show, whether its runs drift, and what to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import typer

from evalnoise.report.numbers import counted
from evalnoise.stats.drift import ORDER_UNKNOWN, Drift, drift
from evalnoise.stats.estimate import Method
from evalnoise.stats.gates.aa import AaMde, aa_mde, bootstrap_delta, halves
from evalnoise.stats.gates.gate import FEWEST_TASKS
from evalnoise.stats.gates.side import Side, on_common_tasks
from evalnoise.stats.planning.budget import rerun_budget, small_pilot
from evalnoise.stats.planning.pilot import median_runs
from flows.views.folding import folded
from flows.views.gate import one_line, p_words
from schemas.study import Analysis
from tasks.gating import Found

METHOD: Final = "normal, plug-in w"
_MARGIN: Final = 0.02
_DRIFTS: Final = 0.05
_WIDTH: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Itself:
    """What one arm says about itself."""

    label: str
    analytic: AaMde
    """The analytic effect and the drift ratio."""
    article: dict[str, float] | None
    """The published A/A bootstrap over halves of the runs: lo, hi, mde; None without two runs."""
    drift: Drift | None
    """Cochran's test; None for scores beside 0 and 1."""
    recommendation: str
    against: tuple[str, ...]
    """What speaks against the arm's numbers."""


def measure_itself(found: Found, *, alpha: float, power: float) -> Itself:
    """Everything about one arm."""
    cells = found.arm.cells
    side = Side(scores=cells.scores, measured=cells.measured)
    analytic = aa_mde(side, alpha=alpha, power=power)
    pilot = median_runs(side.runs), int(side.varied.sum())
    # As `drift` takes them, so that both print one p.
    seed = Analysis.model_validate(found.arm.frozen.study.get("analysis", {})).seed
    tested = drift(cells.outcomes, order_known=cells.order_known, seed=seed, effects=()) if cells.binary else None
    if not cells.order_known:
        analytic = replace(analytic, whole_run_variance=None, drift_ratio=None, drift_undefined=ORDER_UNKNOWN)
    against = found.against
    if found.arm.one_draw:
        against = (*against, "its replicates repeat one recorded run, so they vary by the verifier alone")
    return Itself(
        label=found.arm.label,
        analytic=analytic,
        article=_article(side),
        drift=tested,
        recommendation=_recommendation(analytic, tested, pilot, alpha=alpha, power=power),
        against=against,
    )


def _article(side: Side) -> dict[str, float] | None:
    pair = halves(side)
    one, other, both = on_common_tasks(*pair) if pair else (side, side, None)
    if both is None or not one.n_tasks:
        return None
    _, lo, hi = bootstrap_delta(one, other)
    return {"lo": lo, "hi": hi, "mde": max(abs(lo), abs(hi))}


def _recommendation(found: AaMde, tested: Drift | None, pilot: tuple[int, int], *, alpha: float, power: float) -> str:
    if found.w is None:
        return f"measure it: {found.undefined}"
    if tested is not None and tested.q is not None and tested.q.p_permuted <= _DRIFTS:
        return "runs differ by more than chance: find out what changed between them before any gate is trusted"
    if found.n_tasks < FEWEST_TASKS:
        return f"{counted(found.n_tasks, 'task')} decide nothing: a gate needs {FEWEST_TASKS}; read the outputs"
    if found.w == 0:
        return "nothing varied: no effect can be derived from that, and a gate on such records is inconclusive"
    w = min(found.w, 0.5)
    runs = rerun_budget(w, w, found.n_tasks, _MARGIN, alpha=alpha, power=power)
    unsure = "; the pilot is small: `evalnoise budget` has the cautious budget" if small_pilot(*pilot) else ""
    at_hand = f"{_runs(found)} {'run' if found.most_replicates == 1 else 'runs'}"
    if runs <= found.n_replicates or (found.detectable is not None and found.detectable <= _MARGIN):
        return f"{at_hand} per arm are enough for differences of {_MARGIN:g}, which need {runs}{unsure}"
    return f"take {counted(runs, 'run')} per arm for differences of {_MARGIN:g}; {at_hand} per arm do not show them{unsure}"


def _runs(found: AaMde) -> str:
    """Runs of a task, in words."""
    least, most = found.n_replicates, found.most_replicates
    return str(least) if least == most else f"{least} to {most}"


def print_aa(found: Itself) -> None:
    """Print it in lines."""
    typer.secho(one_line(f"A/A of {found.label}"), bold=True)
    for name, value in _lines(found):
        typer.echo(folded(one_line(value), first=f"  {name:{_WIDTH}}", rest=" " * (_WIDTH + 2)))


def _lines(found: Itself) -> list[tuple[str, str]]:
    one = found.analytic
    lines = [("covers", "new runs of these tasks"), ("tasks, runs per task", f"{one.n_tasks}, {_runs(one)}")]
    if one.w is None:
        lines.append(("undefined", one.undefined))
    else:
        lines += [
            ("w", f"{one.w:.5f}"),
            (
                "minimum detectable effect",
                f"{_or_why(one.detectable, one)}: power {one.power:g}, alpha {one.alpha:g}, two arms like this",
            ),
            ("just significant", f"{_or_why(one.significant, one)}: found every other time"),
            ("halves, drawn within tasks", f"mean squared difference {one.split_variance:.3e}"),
            ("drift ratio, Q/(R-1)", _drift_words(found)),
        ]
    if found.article is not None:
        ends = f"[{found.article['lo']:+.4f}, {found.article['hi']:+.4f}]"
        lines.append(
            ("published A/A bootstrap", f"{ends}, effect {found.article['mde']:.4f}, of two halves of the runs; a matter of luck")
        )
    lines.append(("recommendation", found.recommendation))
    return [*lines, *(("mind", text) for text in found.against)]


def _or_why(value: float | None, one: AaMde) -> str:
    return f"undefined ({one.undefined})" if value is None else f"{value:.4f}"


def _drift_words(found: Itself) -> str:
    one = found.analytic
    if one.drift_ratio is None:
        return f"undefined: {one.drift_undefined}"
    q = found.drift.q if found.drift is not None else None
    test = "" if q is None else f", p {p_words(q.p_permuted)} (Cochran's Q by permutation)"
    return f"{one.drift_ratio:.3f}, near 1 without drift{test}"


def as_json(found: Itself) -> dict[str, Any]:
    """All of it as one object."""
    q = found.drift.q if found.drift is not None else None
    return {
        "arm": found.label,
        **asdict(found.analytic),
        "method": METHOD,
        "drift_p": None if q is None else q.p_permuted,
        "drift_method": Method.PERMUTATION,
        "seed": None if q is None or found.drift is None else found.drift.seed,
        "resamples": None if q is None or found.drift is None else found.drift.resamples,
        "article": found.article,
        "recommendation": found.recommendation,
        "against": list(found.against),
    }
