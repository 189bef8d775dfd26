"""Charts: three formats, hostile names as data and never as markup, bounded in size."""

import errno
import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

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
    write_chart(path, panel, all_pairs(panel.samples), NAMES, source="x")
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
    write_chart(tmp_path / "c.svg", panel, found, NAMES, source="x")
    text = (tmp_path / "c.svg").read_text("utf-8")
    assert text.startswith("<svg")
    assert "<img" not in text
    assert "<script" not in text
    write_chart(tmp_path / "c.PNG", panel, found, NAMES, source="x")
    assert (tmp_path / "c.PNG").read_bytes()[:4] == b"\x89PNG"


def test_other_endings_and_places(panel, tmp_path):
    found = all_pairs(panel.samples)
    with pytest.raises(DataError, match=r"ends in [.]svg"):
        write_chart(tmp_path / "c.pdf", panel, found, NAMES, source="x")
    (tmp_path / "no").write_text("a file")
    with pytest.raises(StoreError, match="can be written"):
        write_chart(tmp_path / "no" / "c.svg", panel, found, NAMES, source="x")


def test_the_data_of_the_charts(panel, monkeypatch):
    found = all_pairs(panel.samples)
    spec = chart_spec(panel, found, NAMES, source="x")
    (accuracy, difference), heat = spec["vconcat"][0]["hconcat"], spec["vconcat"][1]
    rows = spec["datasets"]
    # No row is anywhere else: Altair would validate each, for many seconds.
    drawn = [*accuracy["layer"], *difference["layer"], heat]
    assert [one["data"] for one in drawn] == [{"name": name} for name in ("curve", "points", "rays", "measured", "cells")]
    first = next(row for row in rows["points"] if row["noise"].startswith("total"))
    assert first["se"] == pytest.approx(found.pair(0).se_total)
    assert first["accuracy"] == pytest.approx((found.score_a[0] + found.score_b[0]) / 2)
    assert rows["curve"][50] == {"accuracy": 0.5, "se": pytest.approx(0.5 / np.sqrt(40))}
    (slope,) = [row["difference"] / row["se"] for row in rows["rays"] if row["line"] == "p = 0.05" and row["se"]]
    # A point on the line has this p in the paired t of 40 tasks; its SE is over N, that of t over N - 1.
    assert 2 * stats.t.sf(slope * np.sqrt(39 / 40), 39) == pytest.approx(0.05)
    assert len(rows["cells"]) == 160
    assert spec["title"]["text"] == "x: 4 models, 40 tasks"
    assert "new tasks (population)" in spec["title"]["subtitle"][0]
    monkeypatch.setattr(charts, "MOST_POINTS", 2)
    spec = chart_spec(panel, found, NAMES, source="x")
    thinned = spec["vconcat"][0]["hconcat"][1]
    assert len(spec["datasets"]["measured"]) == 2
    assert "2 of 6 pairs" in thinned["title"]


def test_data_noise_that_is_not_seen_is_not_drawn(panel):
    """The samples of a replay repeat one draw: the table has no data noise for it, and neither has the chart."""
    found = all_pairs(panel.samples)
    kinds = Counter(row["noise"] for row in chart_spec(panel, found, NAMES, source="x")["datasets"]["points"])
    below = int((found.data < 0).sum())
    assert kinds == {"total, one sample": 6, "as measured": 6, "data, the floor": 6 - below}
    replayed = replace(panel, once_drawn=(True, False, False, False))
    spec = chart_spec(replayed, found, NAMES, source="x")
    unseen = (found.a == 0) | (found.data < 0)
    floor = [row for row in spec["datasets"]["points"] if row["noise"] == "data, the floor"]
    assert len(floor) == 6 - int(unseen.sum()) < 6 - below
    assert all(NAMES[0] not in {row["a"], row["b"]} for row in floor)
    assert f"No data noise is drawn for {unseen.sum()} of 6 pairs" in spec["title"]["subtitle"][1]


def test_models_that_are_shown_alike_keep_their_own_column(panel):
    spec = chart_spec(panel, all_pairs(panel.samples), ("a", "a", "a (2)", "b"), source="x")
    labels = spec["vconcat"][1]["encoding"]["x"]["scale"]["domain"]
    assert len(set(labels)) == 4
    assert Counter(row["model"] for row in spec["datasets"]["cells"]) == dict.fromkeys(labels, 40)


def test_a_heat_map_says_what_it_leaves_out():
    known = np.ones((2, 700, 1), dtype=np.bool_)
    known[0, :9] = False
    many = Panel("x", ("a", "b"), tuple(map(str, range(700))), samples_of(np.ones((2, 700, 1)), known), (0, 0), (0, 0))
    heat = chart_spec(many, all_pairs(many.samples), many.models, source="x")["vconcat"][1]
    assert heat["title"] == "700 tasks against 2 models (neighbours averaged into 320 rows; white: no sample)"
    assert (heat["width"], heat["height"]) == (820, 320)


@pytest.mark.parametrize("suffix", [".html", ".svg", ".png"])
def test_a_full_disk_leaves_the_old_file(panel, tmp_path, monkeypatch, suffix):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    path = tmp_path / f"c{suffix}"
    path.write_text("old")
    monkeypatch.setattr(charts, "_rendered", lambda *_: b"new")
    monkeypatch.setattr("evalnoise.store.files.os.fsync", full)
    with pytest.raises(StoreError, match="no space"):
        write_chart(path, panel, all_pairs(panel.samples), NAMES, source="x")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
