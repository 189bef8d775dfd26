"""What `evalnoise compare` says: a table of pairs, the noise in words, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from evalnoise.report.numbers import counted
from evalnoise.stats.models.checkpoints import Averaging, NullCheck
from evalnoise.stats.models.noise import SAME_SAMPLES, single_samples
from flows.cli_errors import printable
from flows.views.compare_columns import below_zero, reasons, rows
from flows.views.compare_data import LEVEL, NO_NEW_RUNS, P_METHOD, Compared, Floats, prediction_shares
from flows.views.fitness import Known
from flows.views.folding import drawn, folded, width

SHOWN = 20
_NAME = 60
_NAMES = ("a", "b")
_ROOM = 22
"""Columns that a name has at least, if it is as long, in a single table."""
_FIRST = (*_NAMES, "score a", "score b", "a - b", "p", "Holm")
"""What the first of two tables has."""
_ENDS = 3
"""Up to so many pairs the table has their intervals."""
_LISTED = 5
"""Models that a line names."""
_ALIKE = (0.4, 0.6)
"""Between these shares of the variance no noise is said to dominate."""
_METHODS = {
    "population": "p, lo, hi: paired t of the means over the samples at hand, over new tasks; p_holm, p_benjamini_hochberg: this p,"
    " adjusted; z: difference over the SE with ddof 0",
    "benchmark": "p, lo, hi: normal, by the SE of the means over the samples at hand, over new runs of these tasks; p_holm, "
    "p_benjamini_hochberg: this p, adjusted",
}


def print_compared(found: Compared, known: Known | None, *, everything: bool, as_json: bool) -> None:
    """The table and what it means, or one JSON object."""
    if as_json:
        typer.echo(json.dumps(_json(found) | (known.facts(of_scores=True) if known else {}), allow_nan=False))
        return
    typer.echo("\n" + folded(printable(f"{found.panel.source}: {counted(len(found.names), 'model')}, {_tasks(found)}")))
    columns, shown = _columns(found, everything=everything)
    for table in _tables(columns, width()):
        typer.echo(drawn(table))
    if more := len(found.pairs) - shown:
        typer.echo(folded(f"… {counted(more, 'more pair')}: --all shows every one, --csv FILE writes them"))
    typer.echo()
    for sentence in sentences(found):
        typer.echo(folded(printable(sentence)))


def _tasks(found: Compared) -> str:
    panel = found.panel
    least, most = int(panel.samples.runs.min()), int(panel.samples.runs.max())
    samples = counted(most, "sample") if least == most else f"{least} to {most} samples"
    return f"{counted(len(panel.task_ids), 'task')}, {samples} each"


def _columns(found: Compared, *, everything: bool) -> tuple[dict[str, list[str]], int]:
    """The cells of each column, and how many pairs they are of."""
    planned = found.asked.plan_tasks is not None or found.asked.plan_samples is not None
    ends = _with_ends(found, everything=everything)
    shown = list(rows(found, None if everything else SHOWN))
    made = {side: [printable(row[side]).replace("\n", "\\n")[:_NAME] for row in shown] for side in _NAMES}
    made |= {name: [_fixed(row[key]) for row in shown] for name, key in (("score a", "score_a"), ("score b", "score_b"))}
    made["a - b"] = ["" if row["difference"] is None else f"{row['difference']:+.4f}" for row in shown]
    if ends:
        made["95 %"] = ["-" if row["lo"] is None else f"[{row['lo']:+.3f}, {row['hi']:+.3f}]" for row in shown]
    errors = {"SE total": "se_total", "SE data": "se_data", "SE pred.": "se_prediction", "SE now": "se"}
    made |= {name: [_fixed(row[key]) for row in shown] for name, key in errors.items()}
    made["z"] = ["-" if row["z"] is None else f"{row['z']:+.2f}" for row in shown]
    made |= {name: [_p(row[key]) for row in shown] for name, key in (("p", "p"), ("Holm", "p_holm"))}
    if planned:
        made["SE plan"] = [_fixed(row["se_planned"]) for row in shown]
    return made, len(shown)


def _tables(columns: dict[str, list[str]], room: int) -> list[Table]:
    """One table where there is room for it, else two whose rows have the same numbers."""
    need = {name: 2 + max([len(name), *map(len, cells)]) for name, cells in columns.items()}
    if sum(min(size, _ROOM) if name in _NAMES else size for name, size in need.items()) <= room:
        return [_table(columns)]
    number = {"#": [str(place + 1) for place in range(len(columns["a"]))]}
    return [_table(number | {name: columns[name] for name in columns if (name in _FIRST) is first}) for first in (True, False)]


def _table(columns: dict[str, list[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        if name in _NAMES:
            table.add_column(name, overflow="fold")
        else:
            table.add_column(name, justify="right", no_wrap=True)
    for cells in zip(*columns.values(), strict=True):
        table.add_row(*map(Text, cells))
    return table


def _with_ends(found: Compared, *, everything: bool) -> bool:
    """Whether the table has the intervals: a long list has them with --all."""
    return everything or len(found.pairs) <= _ENDS


def _fixed(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.2g}" if value >= 1e-4 else "<1e-4"


def sentences(found: Compared) -> list[str]:
    """What the numbers mean and when not to trust them."""
    told = [*_unmatched(found), *found.panel.notes]
    told.append(
        "SE total: one sample a task, over new tasks. SE data: its floor, however many samples. SE pred.: what samples add."
    )
    told.append(
        f"SE now: the samples at hand, over {_over(found.asked.covers)}; z is a - b over it. "
        f"z and p cover {_what(found.asked.covers)}; p: {P_METHOD[found.asked.covers]}; "
        f"Holm: this p over {counted(_defined(found.p), 'pair')}"
        + (
            f", {counted(len(found.p) - _defined(found.p), 'pair')} without a p left out"
            if _defined(found.p) < len(found.p)
            else ""
        )
    )
    told += [*_parts(found), *_noise_sentences(found), *_copies(found), *_single_samples(found)]
    if found.once_drawn:
        told.append(f"Note: {NO_NEW_RUNS}.")
    fit = found.fit
    if fit.median_ratio is not None:
        ends = f" (5 to 95 %: {fit.lo:.2f} to {fit.hi:.2f})" if fit.pairs > 1 else ""
        told.append(f"Beta line sqrt(p(1-p)/N): SE total is {fit.median_ratio:.2f} times it{ends}.")
    told += [*_averaging_sentences(found.averaging, found.asked.average), *_null_sentences(found.null)]
    undefined = dict.fromkeys(reason for reason in _undefined(found) if reason)
    return told + [f"undefined (-): {reason}" for reason in undefined]


def _over(covers: str) -> str:
    return "new tasks" if covers == "population" else "new runs of these tasks"


def _what(covers: str) -> str:
    return f"{_over(covers)} ({covers})"


def _parts(found: Compared) -> Iterator[str]:
    """Where data and prediction noise stand on other tasks than the total."""
    pairs = found.pairs
    partly = np.flatnonzero(~np.isnan(pairs.data) & (pairs.n_twice < pairs.n_tasks))
    if partly.size:
        at = int(partly[0])
        names = f"{found.names[int(pairs.a[at])]} and {found.names[int(pairs.b[at])]}"
        which = f"{names}: {int(pairs.n_twice[at])} of {int(pairs.n_tasks[at])}"
        more = f", and {counted(partly.size - 1, 'more pair')}" if partly.size > 1 else ""
        yield f"SE data and SE pred. stand on the tasks that both have twice ({which}{more}), SE total on all: they do not add up."


def _defined(p: Floats) -> int:
    return int((~np.isnan(p)).sum())


def _unmatched(found: Compared) -> Iterator[str]:
    panel = found.panel
    if any(panel.unmatched):
        yield f"Unmatched tasks, left out of the pairs that they are missing in: {_named(found.names, panel.unmatched)}"
    if any(panel.absent):
        yield f"Tasks without any row of a model: {_named(found.names, panel.absent)}"
    if any(panel.unmeasured):
        whose = _named(found.names, panel.unmeasured)
        yield f"{counted(sum(panel.unmeasured), 'sample')} without a score: in no number, never a failure ({whose})"


def _named(names: Sequence[str], counts: Sequence[int]) -> str:
    """The models that have some, the first few by name."""
    lacking = [f"{name} {count}" for name, count in zip(names, counts, strict=True) if count]
    return ", ".join(lacking[:_LISTED]) + (f", and {len(lacking) - _LISTED} more" if lacking[_LISTED:] else "")


def _undefined(found: Compared) -> Iterator[str]:
    pairs = found.pairs
    z = found.z
    for column in (pairs.total, pairs.data, z):
        at = np.flatnonzero(np.isnan(column))
        if at.size:
            same = bool(pairs.same[at[0]])  # of which a note tells
            told = reasons(found, pairs.pair(int(at[0])), unseen=False, same=same)
            yield from (reason for reason in told if reason != SAME_SAMPLES)
    if ((pairs.data < 0) & ~pairs.same).any():
        yield from below_zero(found)


def _copies(found: Compared) -> Iterator[str]:
    """Pairs that may be the same samples twice, the first by name."""
    pairs = found.pairs
    at = np.flatnonzero(pairs.same)
    if at.size:
        names = f"{found.names[int(pairs.a[at[0]])]} and {found.names[int(pairs.b[at[0]])]}"
        more = f" (and {counted(at.size - 1, 'more pair')} alike)" if at.size > 1 else ""
        yield f"Note: {names}: {SAME_SAMPLES}{more}."


def _single_samples(found: Compared) -> Iterator[str]:
    """Of the pair with the most such tasks."""
    pairs = found.pairs
    lacking = np.where(np.isnan(pairs.of_runs), 0, pairs.n_tasks - pairs.n_twice)
    if found.asked.covers == "benchmark" and lacking.any():
        most = int(np.argmax(lacking))
        yield f"Note: {single_samples(int(pairs.n_tasks[most]), int(pairs.n_twice[most]))}."


def _noise_sentences(found: Compared) -> Iterator[str]:
    pairs = found.pairs
    known = ~np.isnan(prediction_shares(pairs)) & ~pairs.same  # a copy is no pair to take advice from
    if found.once_drawn or not known.any():
        return
    share = float(np.median(prediction_shares(pairs)[known]))
    n = pairs.n_tasks[known]
    total, now = (float(np.median(np.sqrt(column[known] / n))) for column in (pairs.total, pairs.of_mean))
    floor = float(np.median(np.sqrt(np.maximum(pairs.data[known], 0.0) / n)))
    if _ALIKE[0] <= share <= _ALIKE[1]:
        which, what = "prediction and data noise are alike", "more samples a task help up to a point, more tasks always"
    elif share > _ALIKE[1]:
        which, what = "prediction noise dominates", "more samples a task help"
    else:
        which, what = "data noise dominates", "more tasks help, more samples little"
    # Above 1 the data variance came out below 0.
    part = (
        f"{100 * share:.0f} % of the total variance is prediction noise" if share <= 1 else "no data noise can be told from chance"
    )
    (first, *others) = np.flatnonzero(known)
    whose = "a typical pair (median)" if others else " - ".join(found.names[int(side[first])] for side in (pairs.a, pairs.b))
    yield (
        f"In {whose} {which}: {part}, so {what}. "
        f"SE over new tasks: with one sample {total:.4f}, with those at hand {now:.4f}, with endless ones "
        f"{f'{floor:.4f}' if floor else 'too small to be seen here'}."
    )


def _averaging_sentences(found: Averaging | None, patterns: tuple[str, ...]) -> Iterator[str]:
    if found is None:
        return
    a, b = patterns
    if found.se_single is None or found.se_averaged is None or found.difference is None:
        yield f"Averages {a} - {b}: undefined: {found.undefined}"
        return
    zs = [f"{z:+.2f}" if z is not None else "-" for z in (found.z_single, found.z_averaged)]
    yield (
        f"Averages {a} - {b}: {found.difference:+.4f}; SE of one checkpoint each {found.se_single:.4f} (z {zs[0]}), "
        f"of the averages {found.se_averaged:.4f} (z {zs[1]}{f': {found.undefined}' if found.undefined else ''}); {found.note}."
    )


def _null_sentences(found: NullCheck | None) -> Iterator[str]:
    if found is None:
        return
    for share in found.shares:
        if share.share is None:
            yield f"Null check: undefined: {found.undefined}"
            return
        seen = f"{100 * share.share:.1f} % of {counted(found.pairs, 'pair')}"
        chance = "" if share.expected is None else f", by chance {100 * share.expected:.1f} % of them"
        more = f"p of so many: undefined: {share.undefined}" if share.p_more is None else f"p of so many or more {share.p_more:.3g}"
        yield f"Null check: p < {share.level:g} (paired t) in {seen}{chance}; {more}"
    yield f"Null check, by {found.resamples} deals (seed {found.seed}): {found.note}."


def _models(found: Compared) -> Iterator[dict[str, Any]]:
    panel = found.panel
    for row, name in enumerate(panel.models):
        runs = panel.samples.runs[row]
        yield {
            "model": name,
            "unmatched_tasks": panel.unmatched[row],
            "tasks_without_a_row": panel.absent[row] if panel.absent else 0,
            "samples": int(runs.sum()),
            "fewest_samples_of_a_task": int(runs.min()),
            "most_samples_of_a_task": int(runs.max()),
            "unmeasured_samples": panel.unmeasured[row],
        }


def _json(found: Compared) -> dict[str, Any]:
    panel = found.panel
    return {
        "source": panel.source,
        "method": _METHODS[found.asked.covers],
        "covers": found.asked.covers,
        "level": LEVEL,
        "models": list(_models(found)),
        "n_tasks": len(panel.task_ids),
        "unmeasured_samples": sum(panel.unmeasured),
        "family": _defined(found.p),
        "left_out": len(found.p) - _defined(found.p),
        "pairs": list(rows(found)),
        "beta": asdict(found.fit),
        "averaging": None if found.averaging is None else asdict(found.averaging),
        "null_check": None if found.null is None else asdict(found.null),
        "notes": list(panel.notes),
    }
