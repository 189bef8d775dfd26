"""Charts of a comparison as SVG, PNG or HTML that needs no network. Names in them may be hostile: they are data, never markup.

Three panels: SE of a difference against accuracy with the line of the beta theory; the difference against its SE with lines of
equal p; a heat map of tasks by difficulty against models by accuracy. Source: Wang 2025, figures 1, 3 and 5.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

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
_P_LINES: Final = ((0.05, 1.959963984540054), (0.01, 2.5758293035489004), (0.001, 3.2905267314919255))
_PARTS: Final = (("total", "total, one sample"), ("data", "data, the floor"), ("of_mean", "as measured"))
_HTML: Final = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; \
style-src 'unsafe-inline'; img-src data: blob:">
<title>evalnoise compare</title>
</head>
<body>
<div id="chart"></div>
<script>@BUNDLE@</script>
<script>
vegaEmbed("#chart", @SPEC@, {mode: "vega-lite", renderer: "svg",
  actions: {export: true, source: false, compiled: false, editor: false}});
</script>
</body>
</html>
"""
"""The policy keeps a page from loading anything, whatever is in its data."""


def write_chart(path: Path, panel: Panel, found: AllPairs, names: tuple[str, ...]) -> None:
    """Write the charts in the format that the file's name says.

    Args:
        path: A name that ends in one of `SUFFIXES`.
        panel: What is compared.
        found: Its pairs.
        names: The models' names as they are to be shown, without control characters.

    Raises:
        DataError: The name has another ending.
        StoreError: The file cannot be written; what was there is as it was.
    """
    suffix = chart_suffix(path)
    spec = chart_spec(panel, found, names)
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
    bundle = vl_convert.javascript_bundle().replace(  # type: ignore[call-arg]  # its stub misses the default
        "</script", "<\\/script"
    )
    return _HTML.replace("@BUNDLE@", bundle).replace("@SPEC@", _script_safe(spec)).encode()


def _script_safe(spec: dict[str, Any]) -> str:
    """JSON that can stand in a script: nothing in it can end the script or begin markup."""
    text = json.dumps(spec, allow_nan=False)  # ASCII: no line separator that scripts do not allow
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def chart_spec(panel: Panel, found: AllPairs, names: tuple[str, ...]) -> dict[str, Any]:
    """The charts as a Vega-Lite object with all data in it. Names are values of fields, in no expression."""
    import altair as alt  # noqa: PLC0415 - takes a second to load

    alt.data_transformers.disable_max_rows()
    columns = [_against_accuracy(alt, found, names), _against_difference(alt, found, names)]
    chart = alt.vconcat(alt.hconcat(*columns).resolve_scale(color="independent"), _heat_map(alt, panel, names)).resolve_scale(
        color="independent"
    )
    spec: dict[str, Any] = chart.to_dict()
    return spec


def _shown(found: AllPairs) -> Any:
    """Indices of the pairs that are drawn."""
    count = len(found)
    return np.arange(count) if count <= MOST_POINTS else np.linspace(0, count - 1, MOST_POINTS).astype(np.int64)


def _title(text: str, found: AllPairs) -> str:
    return text if len(found) <= MOST_POINTS else f"{text} ({MOST_POINTS} of {len(found)} pairs)"


def _points(found: AllPairs, names: tuple[str, ...], parts: Any) -> list[dict[str, Any]]:
    rows = []
    for index in _shown(found):
        n = int(found.n_tasks[index])
        for name, label in parts:
            variance = float(getattr(found, name)[index])
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


def _against_accuracy(alt: Any, found: AllPairs, names: tuple[str, ...]) -> Any:
    points = _points(found, names, _PARTS)
    n = int(np.median(found.n_tasks)) if len(found) else 0
    grid = np.linspace(0, 1, 101)
    line = [{"accuracy": float(p), "se": float(se)} for p, se in zip(grid, beta_se(grid, max(n, 1)), strict=True)]
    x = alt.X("accuracy:Q", title="mean accuracy of the pair", scale=alt.Scale(domain=[0, 1]))
    y = alt.Y("se:Q", title="SE(A - B)")
    curve = alt.Chart(alt.Data(values=line)).mark_line(color="gray").encode(x=x, y=y, order="accuracy:Q")
    dots = (
        alt.Chart(alt.Data(values=points))
        .mark_circle(size=18, opacity=0.5)
        .encode(x=x, y=y, color=alt.Color("noise:N", title="noise"), tooltip=_tooltip())
    )
    return (curve + dots).properties(
        width=380, height=280, title=_title(f"SE against accuracy; gray: sqrt(p(1-p)/N), N = {n}", found)
    )


def _against_difference(alt: Any, found: AllPairs, names: tuple[str, ...]) -> Any:
    points = _points(found, names, _PARTS[2:])
    top = max((row["se"] for row in points), default=0.0) * 1.1 or 1.0
    lines = [{"se": se, "difference": z * se, "line": f"p = {p:g}"} for p, z in _P_LINES for se in (0.0, top)]
    x, y = alt.X("difference:Q", title="|A - B|"), alt.Y("se:Q", title="SE(A - B) as measured, new tasks")
    rays = alt.Chart(alt.Data(values=lines)).mark_line(strokeDash=[4, 3]).encode(x=x, y=y, color=alt.Color("line:N", title=""))
    dots = alt.Chart(alt.Data(values=points)).mark_circle(size=18, opacity=0.5, color="black").encode(x=x, y=y, tooltip=_tooltip())
    return (rays + dots).properties(width=380, height=280, title=_title("Right of a line: more significant", found))


def _tooltip() -> list[str]:
    return ["a:N", "b:N", "difference:Q", "se:Q", "accuracy:Q"]


def _heat_map(alt: Any, panel: Panel, names: tuple[str, ...]) -> Any:
    models = len(panel.models)
    made = difficulty(panel.samples, most_rows=max(20, _MOST_CELLS // max(1, min(models, _MOST_MODELS))))
    rows = _cells(made, names)
    x = alt.X("place:O", title="models, from the weakest to the strongest", axis=alt.Axis(labels=False, ticks=False))
    y = alt.Y("row:O", title="tasks, from the easiest to the hardest", axis=alt.Axis(labels=False, ticks=False))
    color = alt.Color("score:Q", title="mean score", scale=alt.Scale(domain=[0, 1], scheme="viridis"))
    tooltip = ["model:N", "accuracy:Q", "score:Q"]
    return (
        alt.Chart(alt.Data(values=rows))
        .mark_rect()
        .encode(x=x, y=y, color=color, tooltip=tooltip)
        .properties(width=820, height=320, title=f"{len(made.tasks)} tasks against {len(made.models)} models")
    )


def _cells(made: Difficulty, names: tuple[str, ...]) -> list[dict[str, Any]]:
    columns = np.arange(len(made.models))
    if len(columns) > _MOST_MODELS:
        columns = np.linspace(0, len(made.models) - 1, _MOST_MODELS).astype(np.int64)
    return [
        {
            "row": row,
            "place": place,
            "model": names[int(made.models[column])],
            "accuracy": float(made.accuracy[column]),
            "score": float(made.cells[row, column]),
        }
        for row in range(len(made.cells))
        for place, column in enumerate(columns)
        if not np.isnan(made.cells[row, column])
    ]
