"""Charts as a browser shows them: every mark drawn, names of models as text that runs nothing, and no request."""

from __future__ import annotations

import re

import numpy as np
import pytest

from evalnoise.readers.panel import Panel
from evalnoise.report.charts import write_chart
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.stats.models.samples import samples_of
from tests.support.browser import Visit, visit

LEAK = "http://leak.invalid/a.png"
HOSTILE = (
    "</script><script>ran=1</script>",
    f"<img src={LEAK} onerror=ran=1>",
    "javascript:ran=1",
    "';ran=1;//\"+(ran=1)+`${ran=1}`",
    "\u2028ran=1\u2029//--><!--",
    "[x](javascript:ran=1) <a href='javascript:ran=1'>",
    "\u202e\u05d0\u05d1\u05d2 right to left",
    "L" * 3000,
    "L" * 3000 + "2",
    "@SPEC@ @BUNDLE@ datum['a'] {{ran}}",
)
CLEAN = ("a", "a", "\u8bc4\u6d4b")  # two that are shown alike
TITLES = {"mean accuracy of the pair", "SE(A - B)", "|A - B|", "SE(A - B) as measured, new tasks"}
TRIES = f"""<script>
fetch("{LEAK}").catch(() => 0); navigator.sendBeacon("{LEAK}"); new WebSocket("ws://leak.invalid/");
document.body.innerHTML = `<img src="{LEAK}"><link rel=stylesheet href="{LEAK}"><iframe src="{LEAK}"></iframe>
  <form action="{LEAK}"></form><base href="http://leak.invalid/">`;
document.forms[0].submit();
</script>"""


def panel_of(names, tasks: int, samples: int) -> Panel:
    rng = np.random.default_rng(3)
    shape = (len(names), tasks, samples)
    scores = rng.binomial(1, rng.beta(0.5, 0.5, (1, tasks, 1)), shape)
    known = np.ones(shape, dtype=np.bool_)
    known[0, :2] = False
    none = (0,) * len(names)
    return Panel("x", tuple(names), tuple(f"t{i}" for i in range(tasks)), samples_of(scores, known), none, none)


@pytest.fixture(scope="module")
def panels() -> dict[str, Panel]:
    return {"hostile.html": panel_of(HOSTILE, 40, 3), "clean.html": panel_of(CLEAN, 60, 1)}


@pytest.fixture(scope="module")
def visited(browser, panels, tmp_path_factory) -> Visit:
    folder = tmp_path_factory.mktemp("pages")
    pages = {}
    for name, panel in panels.items():
        write_chart(folder / name, panel, all_pairs(panel.samples), panel.models, source=HOSTILE[1])
        pages[name] = (folder / name).read_text("utf-8")
    policy = re.search(r"<meta http-equiv[^>]*>", pages["clean.html"])
    assert policy is not None
    pages["policy.html"] = f"<html><head>{policy[0]}</head><body>{TRIES}</body></html>"
    # What the browser does with such a name where nothing guards the page: the checks below would see it.
    pages["open.html"] = f"<html><head></head><body>{HOSTILE[1].replace('leak', 'seen')}</body></html>"
    return visit(browser, folder, pages)


@pytest.mark.parametrize("name", ["hostile.html", "clean.html"])
def test_every_mark_and_every_title_is_drawn(visited, panels, name):
    panel = panels[name]
    pairs, report = all_pairs(panel.samples), visited.reports[name]
    drawn = 2 * len(pairs) + int((pairs.data >= 0).sum())
    assert report["marks"] == {
        "concat_0_concat_0_layer_0_marks": 1,
        "concat_0_concat_0_layer_1_marks": drawn,
        "concat_0_concat_1_layer_0_marks": 3,
        "concat_0_concat_1_layer_1_marks": len(pairs),
        "concat_1_marks": int((panel.samples.runs > 0).sum()),
    }
    texts = set(report["texts"])
    assert texts >= TITLES
    assert any("population" in text for text in texts)
    assert any("white: no sample" in text for text in texts)


@pytest.mark.parametrize("name", ["hostile.html", "clean.html"])
def test_names_run_nothing_and_nothing_is_asked_for_or_complained_of(visited, name):
    report = visited.reports[name]
    assert (report["ran"], report["alien"], report["said"], report["blocked"], report["loaded"]) == (0, [], [], [], [])
    assert report["scripts"] == 3  # its own two and the probe


def test_names_are_text_on_the_axis_and_whole_beside_a_mark(visited):
    report = visited.reports["hostile.html"]
    assert set(HOSTILE) <= set(report["shown"])
    heads = {name.strip()[:20] for name in HOSTILE}  # the drawn label is without white space at its ends, and long ones are cut
    assert heads == {text[:20] for text in report["texts"]} & heads
    assert {"a", "a (2)", "\u8bc4\u6d4b"} <= set(visited.reports["clean.html"]["texts"])


def test_the_policy_stops_what_would_run_in_the_page(visited):
    assert {"connect-src", "img-src", "style-src-elem", "frame-src", "form-action", "base-uri"} <= set(
        visited.reports["policy.html"]["blocked"]
    )
    assert visited.reports["open.html"]["ran"] == 1
    assert visited.requests == [LEAK.replace("leak", "seen")]
