"""The pairs of a comparison as columns: rows for a table and for JSON, and a CSV file, a block of pairs at a time."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from evalnoise.readers.export import spreadsheet_text
from evalnoise.stats.models.noise import BELOW_ZERO, SAME_SAMPLES, AllPairs, PairNoise, predicted_ses
from evalnoise.store.files import write_result
from flows.views.compare_data import NO_NEW_RUNS, P_METHOD, Compared, Floats, Ints, order, prediction_shares

_BLOCK = 100_000
"""Pairs at a time: bounds memory, changes no result."""
_NO_FLOOR = "without it no SE of more samples can be predicted: it would seem to fall to 0"


def rows(found: Compared, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The first pairs, or all, as flat objects; undefined numbers are None, with the reason in `undefined`."""
    for block in _blocks(found, most):
        yield from table(found, block).to_pylist()


def write_csv(path: Path, found: Compared, *, spreadsheet_safe: bool = False) -> None:
    """Every pair, a row each, floats with all their digits; undefined is empty. Raises StoreError; then the old file is there."""
    write_result(path, _csv(found, spreadsheet_text if spreadsheet_safe else str))


def _csv(found: Compared, named: Callable[[str], str]) -> Iterator[bytes]:
    yield (",".join(table(found, order(found)[:0]).column_names) + "\n").encode()
    for block in _blocks(found, None):
        out = io.BytesIO()
        csv.write_csv(table(found, block, named=named), out, csv.WriteOptions(include_header=False))
        yield out.getvalue()


def _blocks(found: Compared, most: int | None) -> Iterator[Ints]:
    places = order(found)[:most]
    return (places[start : start + _BLOCK] for start in range(0, len(places), _BLOCK))


def table(found: Compared, at: Ints, *, named: Callable[[str], str] = str) -> pa.Table:
    """The pairs of these places, a row each; `named` is done to the models' names."""
    pairs, population = found.pairs.taken(at), found.asked.covers == "population"
    drawn = np.array(found.panel.once_drawn or (False,) * len(found.names))
    unseen, shares = drawn[pairs.a] | drawn[pairs.b], prediction_shares(pairs)
    data, prediction, runs = (
        np.where(unseen, np.nan, pairs.se(variance)) for variance in (pairs.data, pairs.prediction, pairs.of_runs)
    )
    undefined, note = _texts(found, pairs, found.z[at], unseen)
    names = pa.array([named(name.encode("utf-8", "backslashreplace").decode()) for name in found.panel.models], pa.string())
    measured = pairs.se(pairs.of_mean)
    columns = {
        "a": names.take(pa.array(pairs.a)),
        "b": names.take(pa.array(pairs.b)),
        "n_tasks": pairs.n_tasks,
        "n_twice": pairs.n_twice,
        "score_a": pairs.score_a,
        "score_b": pairs.score_b,
        "difference": pairs.mean,
        "lo": found.lo[at],
        "hi": found.hi[at],
        "se_total": pairs.se(pairs.total),
        "se_data": data,
        "se_prediction": prediction,
        "se_measured": measured,
        "se_runs": runs,
        "prediction_share": np.where(unseen | (shares > 1), np.nan, shares),
        "covers": pa.repeat(pa.scalar(found.asked.covers), len(at)),
        "se": measured if population else runs,
        "z": found.z[at],
        "p": found.p[at],
        "p_method": pa.repeat(pa.scalar(P_METHOD[found.asked.covers]), len(at)),
        "p_holm": found.holm[at],
        "p_benjamini_hochberg": found.bh[at],
        "wins": _counts(pairs.wins),
        "losses": _counts(pairs.losses),
        "p_sign_test": pairs.p_sign,
        "win_rate_a": pairs.q_a,
        "win_rate_b": pairs.q_b,
        "se_over_beta_line": found.beta[at],
        "se_planned": _planned(found, pairs, unseen),
        "undefined": undefined,
        "note": note,
    }
    return pa.table({name: _column(column) for name, column in columns.items()})


def _column(column: Any) -> Any:
    return pa.array(column, from_pandas=True) if isinstance(column, np.ndarray) else column


def _counts(column: Ints) -> Any:
    return pa.array(column, mask=column < 0)


def _planned(found: Compared, pairs: AllPairs, unseen: Any) -> Floats:
    tasks, samples = found.asked.plan_tasks, found.asked.plan_samples
    if tasks is None and samples is None:
        return np.full(len(pairs), np.nan)
    n = np.maximum(pairs.n_tasks, 1) if tasks is None else np.full(len(pairs), tasks)
    planned = predicted_ses(pairs.total, pairs.data, pairs.prediction, n_tasks=n, samples=samples)
    # A copy says nothing of what a plan brings, a replay nothing of what more samples bring.
    return np.where(pairs.same | (unseen & (samples not in {None, 1})), np.nan, planned)


def _texts(found: Compared, pairs: AllPairs, z: Floats, unseen: Any) -> tuple[Any, Any]:
    """Why numbers are undefined, and notes, made once for all pairs that are alike in what these hang on."""
    same = pairs.same
    flags = (
        np.isnan(pairs.total), np.isnan(pairs.data), pairs.data < 0, np.isnan(pairs.z), np.isnan(z), np.isnan(pairs.of_runs),
        np.isnan(pairs.z_runs), same, unseen,
    )  # fmt: skip
    key = pairs.n_tasks * (1 + pairs.n_tasks.max(initial=0)) + pairs.n_twice
    for flag in flags:
        key = 2 * key + flag
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    alike = [(pairs.pair(place), bool(unseen[place]), bool(same[place])) for place in first.tolist()]
    undefined = ["; ".join(dict.fromkeys(reasons(found, pair, unseen=once, same=copy))) for pair, once, copy in alike]
    kinds = pa.array(which)
    return pa.array(undefined, pa.string()).take(kinds), pa.array([pair.note for pair, *_ in alike], pa.string()).take(kinds)


def below_zero(found: Compared) -> Iterator[str]:
    """What is undefined where the data variance came out below 0."""
    yield BELOW_ZERO
    if found.asked.plan_samples not in {None, 1}:
        yield _NO_FLOOR


def reasons(found: Compared, pair: PairNoise, *, unseen: bool, same: bool) -> Iterator[str]:
    """Why numbers of a pair are undefined; `unseen`: a model's samples repeat one draw; `same`: the two may be a copy."""
    z = pair.z_undefined if found.asked.covers == "population" else pair.runs_undefined
    if same:
        yield SAME_SAMPLES
    if unseen:
        yield NO_NEW_RUNS
    elif pair.data is not None and pair.data < 0 and not same:
        yield from below_zero(found)
    yield from (reason for reason in (pair.undefined, pair.parts_undefined, z) if reason)
