"""Charts: three formats, hostile names as data and never as markup, bounded in size."""

import json

import numpy as np
import pytest

from evalnoise.readers.panel import Panel
from evalnoise.report import charts
from evalnoise.report.charts import chart_spec, write_chart
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.stats.models.samples import samples_of
from schemas.errors import DataError, StoreError

HOSTILE = "</script><img src=x onerror=alert(1)>"
NAMES = (HOSTILE, "b & c", "]]><!--", "\u2028datum['a']")


@pytest.fixture(scope="module")
def panel():
    rng = np.random.default_rng(0)
    scores = rng.binomial(1, rng.random((1, 40, 1)), (4, 40, 3))
    return Panel("x", NAMES, tuple(f"t{i}" for i in range(40)), samples_of(scores), (0,) * 4, (0,) * 4)


def test_html_holds_no_markup_of_names_and_loads_nothing(panel, tmp_path):
    path = tmp_path / "c.html"
    write_chart(path, panel, all_pairs(panel.samples), NAMES)
    page = path.read_text("utf-8")
    # The page's own two scripts and no other element.
    assert page.count("</script>") == 2
    assert "<img" not in page.split("vegaEmbed(")[-1]
    assert HOSTILE not in page
    assert "default-src 'none'" in page
    assert "window.vegaEmbed" in page
    assert " src=" not in page.split("<script>")[0]
    start = page.rindex('vegaEmbed("#chart", ') + len('vegaEmbed("#chart", ')
    spec, _ = json.JSONDecoder().raw_decode(page[start:])
    assert HOSTILE in json.dumps(spec, ensure_ascii=False)


def test_svg_and_png(panel, tmp_path):
    found = all_pairs(panel.samples)
    write_chart(tmp_path / "c.svg", panel, found, NAMES)
    text = (tmp_path / "c.svg").read_text("utf-8")
    assert text.startswith("<svg")
    assert "<img" not in text
    assert "<script" not in text
    write_chart(tmp_path / "c.PNG", panel, found, NAMES)
    assert (tmp_path / "c.PNG").read_bytes()[:4] == b"\x89PNG"


def test_other_endings_and_places(panel, tmp_path):
    found = all_pairs(panel.samples)
    with pytest.raises(DataError, match=r"ends in [.]svg"):
        write_chart(tmp_path / "c.pdf", panel, found, NAMES)
    (tmp_path / "no").write_text("a file")
    with pytest.raises(StoreError, match="can be written"):
        write_chart(tmp_path / "no" / "c.svg", panel, found, NAMES)


def test_the_data_of_the_charts(panel, monkeypatch):
    found = all_pairs(panel.samples)
    spec = chart_spec(panel, found, NAMES)
    (accuracy, difference), heat = spec["vconcat"][0]["hconcat"], spec["vconcat"][1]
    dots = accuracy["layer"][1]["data"]["values"]
    first = next(row for row in dots if row["noise"].startswith("total"))
    assert first["se"] == pytest.approx(found.pair(0).se_total)
    assert first["accuracy"] == pytest.approx((found.score_a[0] + found.score_b[0]) / 2)
    line = accuracy["layer"][0]["data"]["values"]
    assert line[50] == {"accuracy": 0.5, "se": pytest.approx(0.5 / np.sqrt(40))}
    rays = difference["layer"][0]["data"]["values"]
    (slope,) = [row["difference"] / row["se"] for row in rays if row["line"] == "p = 0.05" and row["se"]]
    assert slope == pytest.approx(1.959964)
    assert len(heat["data"]["values"]) == 160
    monkeypatch.setattr(charts, "MOST_POINTS", 2)
    thinned = chart_spec(panel, found, NAMES)["vconcat"][0]["hconcat"][1]
    assert len(thinned["layer"][1]["data"]["values"]) == 2
    assert "2 of 6 pairs" in thinned["title"]
