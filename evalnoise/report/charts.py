"""Charts of a comparison as SVG, PNG or HTML that needs no network. Names in them may be hostile: they are data, never markup.

Three panels: SE of a difference against accuracy with the line of the beta theory; the difference against its SE with lines of
equal p; a heat map of tasks by difficulty against models by accuracy. Source: Wang 2025, figures 1, 3 and 5.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.special import stdtrit

from evalnoise.readers.panel import Panel
from evalnoise.stats.models.beta_theory import beta_se
from evalnoise.stats.models.difficulty import Difficulty, difficulty
from evalnoise.stats.models.noise import AllPairs
from evalnoise.store.files import write_result
from schemas.errors import DataError

SUFFIXES: Final = (".svg", ".png", ".html")
MOST_POINTS: Final = 4000
"""Pairs that are drawn; of more, evenly many along the list."""
_MOST_CELLS = 20_000
_MOST_MODELS = 400
_MOST_NAMED = 40
"""Models that the heat map has room to name."""
_FEW_PAIRS = 50
"""Fewer are drawn larger."""
_WIDTH, _HEIGHT = 820, 320
"""Of the heat map in pixels, at most."""
_P_LINES: Final = (0.05, 0.01, 0.001)
_PARTS: Final = ("total, one sample", "data, the floor", "as measured")
_COLORS: Final = ("#e45756", "#f58518", "#4c78a8")
_HTML: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'">
<title>evalnoise compare</title>
</head>
<body>
<div id="chart"><noscript>The charts are drawn by scripts in this page, which are switched off.</noscript></div>
<script>@BUNDLE@</script>
<script>
vegaEmbed("#chart", @SPEC@, {mode: "vega-lite", renderer: "svg",
  actions: {export: true, source: false, compiled: false, editor: false}});
</script>
</body>
</html>
"""
"""The policy keeps a page from loading anything, whatever is in its data."""


def write_chart(path: Path, panel: Panel, found: AllPairs, names: tuple[str, ...], *, source: str) -> None:
    """Write the charts in the format that the file's name says.

    Args:
        path: A name that ends in one of `SUFFIXES`.
        panel: What is compared.
        found: Its pairs.
        names: The models' names as they are to be shown, without control characters.
        source: What the models were compared on, for the title, without control characters.

    Raises:
        DataError: The name has another ending.
        StoreError: The file cannot be written; what was there is as it was.
    """
    suffix = chart_suffix(path)
    spec = chart_spec(panel, found, names, source=source)
    write_result(path, _rendered(spec, suffix))


def chart_suffix(path: Path) -> str:
    """The ending that says the format. Raises DataError for one that says none."""
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise DataError(
            str(path), expected=f"a name that ends in {', '.join(SUFFIXES)}", found="another", remedy="Name it otherwise."
        )
    return suffix


def _rendered(spec: dict[str, Any], suffix: str) -> bytes:
    import vl_convert  # noqa: PLC0415 - takes a second to load

    if suffix == ".svg":
        return str(vl_convert.vegalite_to_svg(spec)).encode()
    if suffix == ".png":
        return bytes(vl_convert.vegalite_to_png(spec, scale=2))
    head, middle, tail = re.split("@BUNDLE@|@SPEC@", _HTML)
    return "".join((head, _bundle(), middle, _script_safe(spec), tail)).encode()


@cache
def _bundle() -> str:
    """The scripts that draw; putting them together takes seconds."""
    import vl_convert  # noqa: PLC0415 - takes a second to load

    made: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub misses the default
    return made.replace("</script", "<\\/script")


def _script_safe(spec: dict[str, Any]) -> str:
    """JSON that can stand in a script: nothing in it can end the script or begin markup."""
    text = json.dumps(spec, allow_nan=False)  # ASCII: no line separator that scripts do not allow
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def chart_spec(panel: Panel, found: AllPairs, names: tuple[str, ...], *, source: str) -> dict[str, Any]:
    """The charts as a Vega-Lite object with all data in it. Names are values of fields and of one domain, in no expression."""
    import altair as alt  # noqa: PLC0415 - takes a second to load

    points = _points(panel, found, names)
    measured = [row for row in points if row["noise"] == _PARTS[2]]
    heat = _heat(panel, names)
    pairs = alt.hconcat(_against_accuracy(alt, found), _against_difference(alt, found)).resolve_scale(color="independent")
    title = alt.TitleParams(
        f"{source}: {len(panel.models)} models, {len(panel.task_ids)} tasks",
        subtitle=_remarks(panel, found),
        anchor="start",
        fontSize=16,
        limit=_WIDTH,
        offset=16,
    )
    chart = alt.vconcat(pairs, _heat_map(alt, heat), title=title).resolve_scale(color="independent")
    spec: dict[str, Any] = chart.to_dict()
    # Altair would validate every row, for many seconds.
    n = _typical_tasks(found)
    spec["datasets"] = {
        "curve": _curve(n), "points": points, "rays": _rays(measured, n), "measured": measured, "cells": heat.cells
    }  # fmt: skip
    return spec


def _remarks(panel: Panel, found: AllPairs) -> list[str]:
    """What the pictures cover, and what is not in them."""
    said = ["A point is a pair of models. SE and p cover new tasks (population)."]
    absent = int((~(_data(panel, found) >= 0)).sum())
    if absent:
        said.append(
            f"No data noise is drawn for {absent} of {len(found)} pairs: it is below 0 by chance, or undefined as the table says."
        )
    if np.unique(found.n_tasks).size > 1:
        said.append(f"The lines of p are for {_typical_tasks(found)} tasks, the median; the table has each pair's own p.")
    return said


def _data(panel: Panel, found: AllPairs) -> Any:
    """Each pair's data variance; NaN also where a model's samples repeat one draw, whose data noise is not seen apart."""
    drawn = np.array(panel.once_drawn or (False,) * len(panel.models))
    return np.where(drawn[found.a] | drawn[found.b], np.nan, found.data)


def _shown(found: AllPairs) -> Any:
    """Indices of the pairs that are drawn."""
    count = len(found)
    return np.arange(count) if count <= MOST_POINTS else np.linspace(0, count - 1, MOST_POINTS).astype(np.int64)


def _title(text: str, found: AllPairs) -> str:
    return text if len(found) <= MOST_POINTS else f"{text} ({MOST_POINTS} of {len(found)} pairs)"


def _points(panel: Panel, found: AllPairs, names: tuple[str, ...]) -> list[dict[str, Any]]:
    rows = []
    variances = (found.total, _data(panel, found), found.of_mean)
    for index in _shown(found):
        n = int(found.n_tasks[index])
        for label, column in zip(_PARTS, variances, strict=True):
            variance = float(column[index])
            if n and variance >= 0:
                rows.append(
                    {
                        "a": names[int(found.a[index])],
                        "b": names[int(found.b[index])],
                        "accuracy": float(found.score_a[index] + found.score_b[index]) / 2,
                        "difference": abs(float(found.mean[index])),
                        "se": float(np.sqrt(variance / n)),
                        "noise": label,
                    }
                )
    return rows


def _curve(n: int) -> list[dict[str, float]]:
    grid = np.linspace(0, 1, 101)
    return [{"accuracy": float(p), "se": float(se)} for p, se in zip(grid, beta_se(grid, max(n, 1)), strict=True)]


def _typical_tasks(found: AllPairs) -> int:
    return int(np.median(found.n_tasks)) if len(found) else 0


def _rays(measured: list[dict[str, Any]], n: int) -> list[dict[str, Any]]:
    """Where the paired t over N tasks has these p; the SE is over N, that of t over N - 1."""
    top, df = max((row["se"] for row in measured), default=0.0) * 1.1 or 1.0, max(n - 1, 1)
    lines = ((p, float(stdtrit(df, 1 - p / 2)) * math.sqrt((df + 1) / df)) for p in _P_LINES)
    return [{"se": se, "difference": slope * se, "line": f"p = {p:g}"} for p, slope in lines for se in (0.0, top)]


def _rows(alt: Any, name: str) -> Any:
    return alt.Chart(alt.NamedData(name))


def _dots(alt: Any, name: str, found: AllPairs, **how: Any) -> Any:
    size, opacity = (60, 0.8) if len(found) < _FEW_PAIRS else (18, 0.5)
    return _rows(alt, name).mark_circle(size=size, opacity=opacity, **how)


def _axis(alt: Any) -> Any:
    """Few labels, in their places: Vega moves those at the ends inwards, onto their neighbours."""
    return alt.Axis(labelFlush=False, labelOverlap=True, tickCount=6)


def _against_accuracy(alt: Any, found: AllPairs) -> Any:
    x = alt.X("accuracy:Q", title="mean accuracy of the pair", scale=alt.Scale(domain=[0, 1]), axis=_axis(alt))
    y = alt.Y("se:Q", title="SE(A - B)")
    color = alt.Color("noise:N", title="noise", scale=alt.Scale(domain=list(_PARTS), range=list(_COLORS)))
    curve = _rows(alt, "curve").mark_line(color="gray").encode(x=x, y=y, order="accuracy:Q")
    dots = _dots(alt, "points", found).encode(x=x, y=y, color=color, tooltip=_tooltip(alt))
    median = ", the median" if np.unique(found.n_tasks).size > 1 else ""
    text = f"SE against accuracy; gray: sqrt(p(1-p)/N), N = {_typical_tasks(found)}{median}"
    return (curve + dots).properties(width=380, height=280, title=_title(text, found))


def _against_difference(alt: Any, found: AllPairs) -> Any:
    x, y = alt.X("difference:Q", title="|A - B|", axis=_axis(alt)), alt.Y("se:Q", title="SE(A - B) as measured, new tasks")
    rays = _rows(alt, "rays").mark_line(strokeDash=[4, 3]).encode(x=x, y=y, color=alt.Color("line:N", title="p, paired t"))
    dots = _dots(alt, "measured", found, color="black").encode(x=x, y=y, tooltip=_tooltip(alt))
    return (rays + dots).properties(width=380, height=280, title=_title("Right of a line: more significant", found))


def _tooltip(alt: Any) -> list[Any]:
    titles = {"difference": "|A - B|", "se": "SE", "accuracy": "mean accuracy"}
    return ["a:N", "b:N", *(alt.Tooltip(f"{name}:Q", title=title, format=".4f") for name, title in titles.items())]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heat:
    """What the heat map shows."""

    labels: list[str]
    """Models that are drawn, from the weakest."""
    rows: int
    cells: list[dict[str, Any]]
    title: str


def _heat(panel: Panel, names: tuple[str, ...]) -> _Heat:
    drawn = max(1, min(len(panel.models), _MOST_MODELS))
    made = difficulty(panel.samples, most_rows=min(_HEIGHT, max(20, _MOST_CELLS // drawn)))
    columns = _columns(made)
    labels = _distinct([names[int(made.models[column])] for column in columns])
    return _Heat(labels=labels, rows=len(made.cells), cells=_cells(made, columns, labels), title=_of_heat(made, columns))


def _heat_map(alt: Any, heat: _Heat) -> Any:
    models, rows = max(1, len(heat.labels)), max(1, heat.rows)
    named, many = models <= _MOST_NAMED, models > 3
    axis = alt.Axis(labels=named, ticks=named, labelAngle=-45 if many else 0, labelLimit=160 if many else 240)
    x = alt.X("model:N", title="models, from the weakest to the strongest", scale=alt.Scale(domain=heat.labels), axis=axis)
    y = alt.Y("row:O", title="tasks, from the easiest to the hardest", axis=alt.Axis(labels=False, ticks=False))
    color = alt.Color("score:Q", title="mean score", scale=alt.Scale(domain=[0, 1], scheme="viridis"))
    # Whole pixels a cell: parts of one leave pale seams.
    width, height = models * max(1, _WIDTH // models), rows * max(1, _HEIGHT // rows)
    tooltip = ["model:N", *(alt.Tooltip(f"{name}:Q", format=".4f") for name in ("accuracy", "score"))]
    drawn = _rows(alt, "cells").mark_rect().encode(x=x, y=y, color=color, tooltip=tooltip)
    return drawn.properties(width=width, height=height, title=heat.title)


def _of_heat(made: Difficulty, columns: Any) -> str:
    remarks = [
        f"{len(columns)} of the models" if len(columns) < len(made.models) else "",
        f"neighbours averaged into {len(made.cells)} rows" if len(made.cells) < len(made.tasks) else "",
        "white: no sample" if np.isnan(made.cells[:, columns]).any() else "",
    ]
    said = "; ".join(remark for remark in remarks if remark)
    return f"{len(made.tasks)} tasks against {len(made.models)} models{f' ({said})' if said else ''}"


def _columns(made: Difficulty) -> Any:
    """Models that are drawn, as columns of the matrix."""
    count = len(made.models)
    return np.arange(count) if count <= _MOST_MODELS else np.linspace(0, count - 1, _MOST_MODELS).astype(np.int64)


def _distinct(names: list[str]) -> list[str]:
    """The names, those that are shown alike told apart, as a scale needs them."""
    made: dict[str, None] = {}
    for name in names:
        shown, number = name, 1
        while shown in made:
            number += 1
            shown = f"{name} ({number})"
        made[shown] = None
    return list(made)


def _cells(made: Difficulty, columns: Any, labels: list[str]) -> list[dict[str, Any]]:
    return [
        {"row": row, "model": label, "accuracy": float(made.accuracy[column]), "score": float(made.cells[row, column])}
        for row in range(len(made.cells))
        for column, label in zip(columns, labels, strict=True)
        if not np.isnan(made.cells[row, column])
    ]
