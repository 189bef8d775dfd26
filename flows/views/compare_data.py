"""What `evalnoise compare` found: a panel compared, its pairs as rows, and a CSV file of them."""

from __future__ import annotations

import csv
import fnmatch
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalnoise.readers.export import spreadsheet_text
from evalnoise.readers.panel import Panel
from evalnoise.stats.estimate import Covers
from evalnoise.stats.models.beta_theory import BetaFit, beta_fit, beta_ratios
from evalnoise.stats.models.checkpoints import Averaging, NullCheck, averaging, null_check
from evalnoise.stats.models.noise import BELOW_ZERO, AllPairs, PairNoise, predicted_se
from evalnoise.stats.models.pair_intervals import intervals, t_p_values
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.store.files import write_result
from flows.cli_errors import printable
from flows.cli_options import misuse

Floats = NDArray[np.float64]

NO_NEW_RUNS = "the samples of a replay repeat one recorded draw: its prediction noise is not seen, and data noise holds all of it"
LEVEL = 0.95
"""Of the intervals of a - b."""


class Sort(StrEnum):
    """Orders of the pairs."""

    Z = "z"
    P = "p"
    DIFFERENCE = "difference"
    SE = "se"
    PREDICTION = "prediction"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for."""

    covers: str
    sort: Sort
    plan_tasks: int | None
    plan_samples: int | None
    average: tuple[str, ...]
    null: bool


@dataclass(frozen=True, slots=True)
class Compared:
    """A panel, compared."""

    panel: Panel
    names: tuple[str, ...]
    """The models' names without control characters."""
    asked: Asked
    pairs: AllPairs
    z: Floats
    p: Floats
    holm: Floats
    bh: Floats
    p_t: Floats
    """Of the paired t over tasks (population), whatever was asked for."""
    lo: Floats
    """Lower end of the interval of a - b, for what was asked for."""
    hi: Floats
    """Upper end."""
    beta: Floats
    fit: BetaFit
    averaging: Averaging | None
    null: NullCheck | None

    @property
    def once_drawn(self) -> bool:
        """Whether a model's samples repeat one draw."""
        return any(self.panel.once_drawn)


def compared(panel: Panel, asked: Asked) -> Compared:
    """All pairs, with z and p of what was asked for."""
    pairs = all_pairs(panel.samples)
    names = tuple(printable(name).replace("\n", "\\n") for name in panel.models)
    z, p = (pairs.z, pairs.p_value) if asked.covers == "population" else (pairs.z_runs, pairs.p_runs)
    lo, hi = intervals(pairs, covers=Covers(asked.covers), level=LEVEL)
    if asked.covers == "benchmark" and any(panel.once_drawn):
        drawn = np.array(panel.once_drawn)
        unseen = drawn[pairs.a] | drawn[pairs.b]
        z, p, lo, hi = (np.where(unseen, np.nan, column) for column in (z, p, lo, hi))
    groups = [[row for row, name in enumerate(panel.models) if fnmatch.fnmatchcase(name, pattern)] for pattern in asked.average]
    return Compared(
        panel=panel,
        names=names,
        asked=asked,
        pairs=pairs,
        z=z,
        p=p,
        holm=pairs.holm(p),
        bh=pairs.benjamini_hochberg(p),
        p_t=t_p_values(pairs),
        lo=lo,
        hi=hi,
        beta=beta_ratios(pairs),
        fit=beta_fit(pairs),
        averaging=_averaged(panel, asked, groups) if groups else None,
        null=null_check(panel.samples) if asked.null else None,
    )


def _averaged(panel: Panel, asked: Asked, groups: list[list[int]]) -> Averaging:
    for pattern, group in zip(asked.average, groups, strict=True):
        if not group:
            raise misuse(f"--average {pattern}: no model of that name; there are {', '.join(panel.models[:10])}")
    if set(groups[0]) & set(groups[1]):
        raise misuse(f"--average: {panel.models[min(set(groups[0]) & set(groups[1]))]} is in both groups")
    return averaging(panel.samples, groups[0], groups[1])


def order(found: Compared) -> Iterator[int]:
    """Indices of the pairs as asked; those without the number last."""
    pairs = found.pairs
    keys: dict[Sort, Any] = {
        Sort.Z: -np.abs(found.z),
        Sort.P: found.p,
        Sort.DIFFERENCE: -np.abs(pairs.mean),
        Sort.SE: pairs.total,
        Sort.PREDICTION: -pairs.prediction,
    }
    if found.asked.sort is Sort.NAME:
        return iter(sorted(range(len(pairs)), key=lambda i: (found.names[int(pairs.a[i])], found.names[int(pairs.b[i])])))
    return (int(index) for index in np.argsort(keys[found.asked.sort], kind="stable"))  # NaN comes last


def rows(found: Compared) -> Iterator[dict[str, Any]]:
    """Every pair as a flat object; undefined numbers are None, with the reason in `undefined`."""
    shares = prediction_shares(found.pairs)
    for index in order(found):
        pair = found.pairs.pair(index)
        unseen = any(found.panel.once_drawn[int(side[index])] for side in (found.pairs.a, found.pairs.b))
        data, prediction, runs = (None, None, None) if unseen else (pair.se_data, pair.se_prediction, pair.se_runs)
        yield {
            "a": found.panel.models[int(found.pairs.a[index])],
            "b": found.panel.models[int(found.pairs.b[index])],
            "n_tasks": pair.n_tasks,
            "n_twice": pair.n_twice,
            "score_a": pair.score_a,
            "score_b": pair.score_b,
            "difference": pair.mean,
            "lo": _number(found.lo[index]),
            "hi": _number(found.hi[index]),
            "se_total": pair.se_total,
            "se_data": data,
            "se_prediction": prediction,
            "se_measured": pair.se_mean,
            "se_runs": runs,
            "prediction_share": None if unseen or shares[index] > 1 else _number(shares[index]),
            "covers": found.asked.covers,
            "se": pair.se_mean if found.asked.covers == "population" else runs,
            "z": _number(found.z[index]),
            "p": _number(found.p[index]),
            "p_holm": _number(found.holm[index]),
            "p_t": _number(found.p_t[index]),
            "p_benjamini_hochberg": _number(found.bh[index]),
            "wins": pair.wins,
            "losses": pair.losses,
            "p_sign_test": pair.p_sign,
            "win_rate_a": pair.q_a,
            "win_rate_b": pair.q_b,
            "se_over_beta_line": _number(found.beta[index]),
            "se_planned": None if unseen and _several(found) else _planned(found, pair),
            "undefined": "; ".join(dict.fromkeys(reasons(found, pair, unseen=unseen))),
            "note": pair.note,
        }


def reasons(found: Compared, pair: PairNoise, *, unseen: bool) -> Iterator[str]:
    """Why numbers of a pair are undefined; `unseen`: a model's samples repeat one draw."""
    z = pair.z_undefined if found.asked.covers == "population" else pair.runs_undefined
    if unseen:
        yield NO_NEW_RUNS
    elif pair.data is not None and pair.data < 0:
        yield BELOW_ZERO
    yield from (reason for reason in (pair.undefined, pair.parts_undefined, z) if reason)


def prediction_shares(pairs: AllPairs) -> Floats:
    """Of each pair prediction / (data + prediction), over the tasks that both have twice; above 1 where data came out below 0."""
    total = pairs.data + pairs.prediction
    return np.where(total > 0, pairs.prediction / np.where(total > 0, total, 1.0), np.nan)


def _several(found: Compared) -> bool:
    return found.asked.plan_samples not in {None, 1}


def _planned(found: Compared, pair: PairNoise) -> float | None:
    if found.asked.plan_tasks is None and found.asked.plan_samples is None:
        return None
    return predicted_se(pair, n_tasks=found.asked.plan_tasks or max(1, pair.n_tasks), samples=found.asked.plan_samples)


def _number(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def write_csv(path: Path, found: Compared, *, spreadsheet_safe: bool = False) -> None:
    """Every pair, a row each, floats with all their digits; undefined is empty. Raises StoreError; then the old file is there."""
    safe = spreadsheet_text if spreadsheet_safe else str
    out = io.StringIO()
    writer = csv.DictWriter(out, _COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows(found):
        writer.writerow({name: safe(value) if isinstance(value, str) else value for name, value in row.items()})
    write_result(path, out.getvalue().encode("utf-8", "backslashreplace"))


_COLUMNS = (
    "a", "b", "n_tasks", "n_twice", "score_a", "score_b", "difference", "lo", "hi", "se_total", "se_data", "se_prediction",
    "se_measured", "se_runs", "prediction_share", "covers", "se", "z", "p", "p_holm", "p_t", "p_benjamini_hochberg", "wins",
    "losses", "p_sign_test", "win_rate_a", "win_rate_b", "se_over_beta_line", "se_planned",
    "undefined", "note",
)  # fmt: skip
