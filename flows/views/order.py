"""How `drift`, `tasks`, `nights` and `sequential` print."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np
import typer

from evalnoise.readers.cells import Cells
from evalnoise.readers.nights import Nights
from evalnoise.readers.sequence import Observations
from evalnoise.report.numbers import UNDEFINED, counted, interval, number
from evalnoise.stats.drift import Drift, DriftTest
from evalnoise.stats.estimate import Covers, Method
from evalnoise.stats.influence import concentration_of_scores, contrast_influence_of_scores, influence_of_scores
from evalnoise.stats.nights import Chart
from evalnoise.stats.reliability import task_rates
from evalnoise.stats.sequential import Sequence, betting, first_stop, robbins, robbins_interval
from flows.cli_errors import printable
from flows.views.fitness import Known, arm_facts
from flows.views.folding import say, width
from flows.views.sql import aligned

_LAST_NIGHTS = 10
_OVER = {Covers.POPULATION: "the mean over new tasks", Covers.BENCHMARK: "the score of these tasks over new runs"}


def _say_table(header: list[str], rows: list[list[str]]) -> None:
    """A table of tasks, which alone are texts."""
    shown = [[printable(cell).replace("\n", " ") for cell in row] for row in rows]
    for line in aligned(header, shown, [False, *[True] * (len(header) - 1)], room=width() - 2):
        typer.echo(f"  {line}")


def _json(facts: dict[str, Any]) -> None:
    typer.echo(json.dumps(facts, allow_nan=False))


# --- drift -----------------------------------------------------------------------------------------------------------------


def print_drift(label: str, found: Drift, known: Known, *, facts: dict[str, Any], as_json: bool, note: str = "") -> None:
    """The three tests with their power; never that there is no drift."""
    if as_json:
        _json(
            {"arm": label, **facts, **asdict(found), "smallest_p": found.smallest_p}
            | {"covers": Covers.BENCHMARK, "method": Method.PERMUTATION, "note": note, **known.facts(of_scores=True)}
        )
        return
    left_out = f", {counted(found.left_out, 'task')} with an unmeasured run left out" if found.left_out else ""
    say(
        f"Drift of {label}: {counted(found.n_tasks, 'task')}, {counted(found.n_replicates, 'replicate')}{left_out}",
        *known.lines(of_scores=True),
    )
    if note:
        say(f"  {note[0].upper()}{note[1:]}.")
    if found.q is None or found.trend is None or found.scan is None:
        say(f"  {UNDEFINED}: {found.undefined}")
        return
    step = f"step after replicate {(found.change_point or 0) - 1}"
    rows = (("Cochran's Q", found.q, "Q"), ("trend", found.trend, "z"), (step, found.scan, "z"))
    seen = (("Cochran's Q for a step", found.q), ("the trend for a steady drift", found.trend), ("the scan for a step", found.scan))
    for name, test, letter in rows:
        limiting = "" if test.p is None else f", {_p(test.p)} in the limit"
        say(f"  {name:<24} {letter} = {test.statistic:8.3f}  p = {_p(test.p_permuted)} by permutation{limiting}")
    say(
        f"  {100 * (found.change or 0):+.2f} points after the step; {100 * (found.slope or 0):+.3f} points per replicate; "
        f"whole-run A/A splits differ by {found.split_ratio or 0:.2f} times what runs alone give",
        f"  {_verdict(found)}",
    )
    for said, tested in seen:
        say(f"  power of {said}: {_power(found, tested)}")
    if found.q.note:
        say(f"  {found.q.note}")
    say(f"  {found.resamples} permutations within tasks, seed {found.seed}; it is about these tasks, not others")


def _p(p: float) -> str:
    return "< 0.0001" if p < 0.0001 else f"{p:.4f}"


def _verdict(found: Drift) -> str:
    if found.smallest_p is not None and found.smallest_p <= found.alpha:
        return (
            f"Drift: p = {found.smallest_p:.4f} over the three tests. Replicates are no repeats of one thing; w, intervals and "
            "budgets leave that variation out."
        )
    return "Nothing was seen that chance would not give. That proves little: the power says what would have been seen."


def _power(found: Drift, test: DriftTest) -> str:
    chances = [f"{chance:.2f} for {effect * 100:g}" for effect, chance in zip(found.effects, test.power, strict=True)]
    return f"{', '.join(chances)} points, at {found.alpha:g}"


# --- tasks -----------------------------------------------------------------------------------------------------------------


_NO_RATES = "scores are not all 0 or 1: w is that of scores, and a mean score has no Clopper-Pearson interval"


def print_tasks(known: Known, *, top: int, level: float, as_json: bool) -> None:
    """The noisiest tasks of an arm, and how concentrated its noise is: of its scores, which mostly are passes and failures."""
    (arm,) = known.arms
    passes, runs = arm.cells.passes, arm.cells.runs
    cells = arm.cells.scores, arm.cells.measured
    each, spread, rates = influence_of_scores(*cells), concentration_of_scores(*cells), task_rates(passes, runs, level=level)
    rate_of, binary, means = {int(task): place for place, task in enumerate(rates.tasks)}, arm.cells.binary, _means(arm.cells)
    order = sorted(range(len(each.tasks)), key=lambda place: (-each.s2[place], place))[:top]
    rows: list[dict[str, Any]] = []
    for place in order:
        task = int(each.tasks[place])
        at = rate_of[task]
        rows.append(
            {
                "task_id": arm.cells.task_ids[task],
                "passes": int(passes[task]),
                "runs": int(runs[task]),
                "score": float(means[task]),
                "rate": float(rates.rates[at]) if binary else None,
                "rate_lo": float(rates.lo[at]) if binary else None,
                "rate_hi": float(rates.hi[at]) if binary else None,
                "s2": float(each.s2[place]),
                "share": None if each.share is None else float(each.share[place]),
                "w_without": None if each.without is None else float(each.without[place]),
                "z": None if each.z is None else float(each.z[place]),
            }
        )
    if as_json:
        facts = {
            "arm": arm.label,
            **arm_facts(arm),
            "w": each.w,
            "effective_tasks": spread.effective,
            "variable_tasks": spread.variable_tasks,
        }
        carriers = {"carry_half": len(spread.half), "carry_80": len(spread.most), "n_tasks": spread.n_tasks}
        exact = {
            "covers": Covers.BENCHMARK,
            "level": level,
            "rate_method": Method.CLOPPER_PEARSON if binary else None,
            "rate_undefined": "" if binary else _NO_RATES,
            "undefined": each.undefined or spread.undefined,
            **known.facts(of_scores=True),
        }
        _json(facts | carriers | exact | {"tasks": rows})
        return
    say(f"Tasks of {arm.label}: w = {number(each.w, 5)} over {counted(spread.n_tasks, 'task')}", *known.lines(of_scores=True))
    if spread.effective is None:
        say(f"  noise concentration {UNDEFINED}: {spread.undefined}")
    else:
        say(
            f"  {counted(spread.variable_tasks, 'task')} varied; the noise is as concentrated as in {spread.effective:.1f} equal "
            f"tasks; {len(spread.half)} carry half of w, {len(spread.most)} carry 80 %"
        )
    _tasks_table(rows, level, binary=binary)


def _means(cells: Cells) -> Any:
    """Mean score of each task over its measured runs, shape (N,)."""
    return cells.scores.sum(axis=1, where=cells.measured) / np.maximum(cells.runs, 1)


def _tasks_table(rows: list[dict[str, Any]], level: float, *, binary: bool) -> None:
    if not rows:
        return
    head = f"rate [{100 * level:g} %]" if binary else "mean score"
    cells = []
    for row in rows:
        shown = f"{row['rate']:.3f} {interval(row['rate_lo'], row['rate_hi'], 3)}" if binary else f"{row['score']:.3f}"
        share = "" if row["share"] is None else f"{100 * row['share']:.1f} %"
        count = f"{row['passes']}/{row['runs']}"
        cells.append([row["task_id"], count, shown, f"{row['s2']:.5f}", share, number(row["w_without"], 5)])
    _say_table(["task", "passes", head, "s2", "share of w", "w without"], cells)
    by_itself = "Intervals are Clopper-Pearson, each task by itself: among many, some lie beside the truth."
    say(f"  {by_itself if binary else _NO_RATES[0].upper() + _NO_RATES[1:] + '.'}")


def print_against(known: Known, *, of: str, top: int, as_json: bool) -> None:
    """The difference of two arms without each task, the task that changes it most first."""
    one, other = known.arms
    place_of = {task: place for place, task in enumerate(other.cells.task_ids)}
    common = [(place, place_of[task]) for place, task in enumerate(one.cells.task_ids) if task in place_of]
    mine, theirs = [a for a, _ in common], [b for _, b in common]
    places = ((one.cells, mine), (other.cells, theirs))
    found = contrast_influence_of_scores(*(table[at] for cells, at in places for table in (cells.scores, cells.measured)), of=of)
    value, without = found.value, found.without
    rows: list[dict[str, Any]] = []
    if without is not None and value is not None:
        for place in np.lexsort((np.arange(len(without)), -np.abs(without - value)))[:top]:
            task = int(found.tasks[place])
            sides = [_side(cells, at[task]) for cells, at in places]
            left = float(without[place])
            rows.append(
                {"task_id": one.cells.task_ids[mine[task]], "a": sides[0], "b": sides[1], "without": left, "change": left - value}
            )
    unmatched = len(one.cells.task_ids) + len(other.cells.task_ids) - 2 * len(common)
    if as_json:
        arms = {
            "a": one.label,
            "b": other.label,
            "arms": [{"label": arm.label, **arm_facts(arm)} for arm in (one, other)],
            "of": of,
            "difference": value,
            "n_tasks": len(found.tasks),
            "unmatched": unmatched,
        }
        about = {"covers": Covers.BENCHMARK, "undefined": found.undefined, **known.facts(of_scores=True)}
        _json(arms | about | {"tasks": rows})
        return
    say(f"{of} of {one.label} less {of} of {other.label}: {number(value, 5)} over {counted(len(found.tasks), 'common task')}")
    say(*known.lines(of_scores=True))
    if unmatched:
        say(f"  {counted(unmatched, 'task')} of one arm alone left out")
    if found.undefined:
        say(f"  {UNDEFINED}: {found.undefined}")
    if rows:
        cells = [[row["task_id"], row["a"], row["b"], f"{row['without']:+.5f}", f"{row['change']:+.5f}"] for row in rows]
        _say_table(["task", "ARM", "OTHER", "without it", "change"], cells)


def _side(cells: Cells, task: int) -> str:
    """Passes of runs; of scores the mean, and of how many."""
    runs = int(cells.runs[task])
    return f"{int(cells.passes[task])}/{runs}" if cells.binary else f"{float(_means(cells)[task]):.3f} of {runs}"


# --- nights ----------------------------------------------------------------------------------------------------------------


def print_nights(found: Nights, chart: Chart, *, as_json: bool) -> None:
    """The newest nights against their limits, and what an alarm means."""
    rows = list(_night_rows(found, chart))
    if as_json:
        facts = {"nights_of": found.label, "rule": chart.rule, "baseline": chart.baseline, "n_tasks": found.n_tasks}
        more = {"replicates": found.replicates, "n_dropped": found.n_dropped, "centre": chart.centre, "sd": chart.sd}
        made = {"covers": chart.covers, "level": chart.level, "method": chart.method}
        lasting = {"lasting_seen": chart.lasting_seen, "lasting_nights": chart.lasting_nights}
        said = {"seen": chart.seen, "alarm": chart.alarm, "verdict": _night_verdict(found, chart), "undefined": chart.undefined}
        left = {
            "note": "; ".join(note for note in (chart.note, found.note) if note),
            "newest_left_out": found.newest_left_out,
            "left_out": [list(pair) for pair in found.left_out],
        }
        _json(facts | more | made | lasting | said | left | {"nights": rows})
        return
    dropped = f", {counted(found.n_dropped, 'task')} left out that some night has not measured" if found.n_dropped else ""
    each = f", {counted(found.n_tasks, 'task')} x {counted(found.replicates, 'run')}" if found.n_tasks and found.replicates else ""
    say(f"Nights of {found.label}: {counted(len(rows), 'night')}, rule {chart.rule}{each}{dropped}")
    if found.note:
        say(f"  {found.note[0].upper()}{found.note[1:]}.")
    if chart.centre is not None and chart.sd is not None:
        say(f"  baseline of {chart.baseline} nights: mean {chart.centre:.4f}, standard deviation between nights {chart.sd:.4f}")
    hidden = len(rows) - _LAST_NIGHTS
    if hidden > 0:
        alarmed = [row["night"] for row in rows[:hidden] if row["alarm"]]
        say(f"  {counted(hidden, 'earlier night')}{', of which alarmed: ' + ', '.join(alarmed) if alarmed else ''}")
    for row in rows[-_LAST_NIGHTS:]:
        say(_night_line(row, chart))
    for label, reason in found.left_out:
        say(f"  {label}: does not count: {reason}")
    say(f"  {_night_verdict(found, chart)}", f"  {chart.note}.")
    if chart.seen is not None:
        say(f"  {_seen(chart)}" + ("." if chart.seen >= 1 else "; smaller ones mostly are not."))


def _seen(chart: Chart) -> str:
    seen = chart.seen or 0.0
    if seen >= 1:
        return "No change that a score can make in one night alone is seen on it with probability 0.8"
    alone = f"A change of one night alone of {100 * seen:.1f} points is seen on it with probability 0.8"
    if chart.rule != "ewma" or chart.lasting_nights == 1:
        return alone
    return f"{alone}, one that stays of {100 * (chart.lasting_seen or 0):.1f} points after {chart.lasting_nights} nights of it"


def _night_rows(found: Nights, chart: Chart) -> Iterable[dict[str, Any]]:
    first_judged = len(found.nights) - (0 if chart.lo is None else len(chart.lo))
    for place, night in enumerate(found.nights):
        judged = bool(chart.judged[place])
        ends: tuple[float | None, float | None] = (None, None)
        if judged and chart.lo is not None and chart.hi is not None:
            ends = float(chart.lo[place - first_judged]), float(chart.hi[place - first_judged])
        yield {
            "night": night.label,
            "protocol": night.protocol,
            "score": night.score,
            "point": float(chart.points[place]),
            "judged": judged,
            "lo": ends[0],
            "hi": ends[1],
            "alarm": bool(chart.alarms[place]),
            "unmeasured": night.unmeasured,
            "changes": list(night.changes),
        }


def _night_line(row: dict[str, Any], chart: Chart) -> str:
    point = f"  average {row['point']:.4f}" if chart.rule == "ewma" and row["judged"] else ""
    state = interval(row["lo"], row["hi"]) if row["judged"] else "baseline"
    facts = [f"ALARM, {'low' if row['point'] < row['lo'] else 'high'}"] if row["alarm"] else []
    facts += [counted(row["unmeasured"], "cell") + " unmeasured"] if row["unmeasured"] else []
    facts += row["changes"]
    return f"  {row['night']:<12} {row['score']:.4f}{point}  {state}{'  ' + '; '.join(facts) if facts else ''}"


def _night_verdict(found: Nights, chart: Chart) -> str:
    newest = found.nights[-1].label
    if found.newest_left_out:
        label, reason = found.left_out[-1]
        return f"{label}: no verdict, because {reason}"
    if chart.undefined:
        return f"{newest}: no verdict. {chart.undefined[0].upper()}{chart.undefined[1:]}"
    if not chart.judged[-1]:
        return f"{newest}: no verdict. It is the last night of the baseline"
    if chart.alarm:
        return f"{newest}: ALARM, the score is out of its limits"
    return f"{newest}: within its limits; that does not say that nothing changed"


# --- sequential ------------------------------------------------------------------------------------------------------------


def print_counts(passes: int, runs: int, *, level: float, half_width: float | None, as_json: bool) -> None:
    """Robbins' interval of counts alone: this look, without the earlier ones."""
    lo, hi = robbins_interval(passes, runs, level=level)
    stop = None if half_width is None else (hi - lo) / 2 <= half_width
    assumes = "trials are independent and have one rate, for instance one run each of new tasks; repeats of a task are not"
    if as_json:
        _json(
            {"n": runs, "mean": passes / runs, "lo": lo, "hi": hi, "level": level, "method": Method.ROBBINS}
            | {"covers": Covers.POPULATION, "assumes": assumes, "half_width": (hi - lo) / 2, "stop": stop}
        )
        return
    say(f"{passes} of {runs}: {passes / runs:.4f} {interval(lo, hi)}, {100 * level:g} % at every look ({Method.ROBBINS})")
    say(f"  Assumes that {assumes}.")
    if half_width is not None:
        say(f"  Stop rule: half-width {(hi - lo) / 2:.4f}, wanted {half_width:g}: {'stop' if stop else 'go on'}")


def print_sequence(
    found: Observations, known: Known | None, *, method: str | None, level: float, half_width: float | None, as_json: bool
) -> None:
    """A confidence sequence at its last look. ValueError where the method does not fit the scores."""
    binary = bool(((found.values == 0) | (found.values == 1)).all())
    chosen = robbins if (method or ("robbins" if binary else "betting")) == "robbins" else betting
    result: Sequence = chosen(found.values, covers=found.covers, level=level)
    stopped = None if half_width is None else first_stop(found.values, half_width, sequence=chosen, level=level)
    if as_json:
        facts = {**asdict(result), "half_width": result.half_width, "one_observation": found.one_is, "assumes": found.assumes}
        facts["note"] = "; ".join(note for note in (result.note, found.note) if note)
        for arm in known.arms if known else ():
            facts |= {"arm": arm.label, **arm_facts(arm), **(known.facts(of_scores=True) if known else {})}
        _json(
            facts
            | ({} if half_width is None else {"wanted_half_width": half_width, "stop": stopped is not None, "stop_at": stopped})
        )
        return
    say(
        f"{counted(result.n, 'observation')}, mean {number(result.mean)}",
        *(known.lines(of_scores=True) if known else ()),
        f"  {interval(result.running_lo, result.running_hi)}  all looks together: quote this one",
        f"  {interval(result.lo, result.hi)}  this look by itself",
        f"  {100 * level:g} % at every look ({result.method}); of {_OVER[found.covers]}",
        f"  One observation is {found.one_is}.",
        f"  Assumes that {found.assumes}.",
    )
    for note in (result.note, found.note):
        if note:
            say(f"  {note}")
    if half_width is not None:
        done = f"stop; it held from observation {stopped} on" if stopped is not None else "go on"
        say(f"  Stop rule: half-width {result.half_width:.4f}, wanted {half_width:g}: {done}")
