"""What commands print fits 80 columns, and says as much as in wider ones."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.views.compare import _FIRST, _tables
from flows.views.sql import aligned
from tests.support.gate_store import draws, seal
from tests.support.outcome_store import build

RATES = np.where(np.arange(40) < 25, 0.5, 1.0)
NAMES = ("a-model-with-a-name-of-43-characters-2026-11", "another-model-with-a-long-name-2026-11-30-b", "c")


def shown(*arguments, columns: str) -> str:
    result = CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": columns})
    assert result.exit_code in {0, 12, 13}, (result.exit_code, result.output, result.exception)
    return result.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("width")
    seal(folder / "s", "a-baseline-of-some-night", draws(RATES, 4, 1))
    seal(folder / "s", "what-asks-to-pass", draws(RATES * 0.6, 4, 2), stack={"model": "m2"})
    build(folder / "s", {("a-stack", "live"): draws(RATES, 4, 3)}, study="planned")
    rng = np.random.default_rng(0)
    rows = [f"{name},t{task},{sample},{int(rng.random() < 0.5)}" for name in NAMES for task in range(12) for sample in range(3)]
    (folder / "compare.csv").write_text("model,task,sample,score\n" + "\n".join(rows) + "\n")
    rated = [f"q{i},{name},{rng.choice(list('bcdefg')) * 9}" for name in NAMES for i in range(20) for _ in range(2)]
    (folder / "ratings.csv").write_text("item,rater,rating\n" + "\n".join(rated) + "\n")
    scores = [f"2026-11-{night + 1:02},{rng.random():.6f},{200 - night}" for night in range(25)]
    (folder / "nights.csv").write_text("night,score,n\n" + "\n".join(scores) + "\n")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        *("gate", "article", "aa", "compare", "agreement", "tasks", "against", "ranking"),
        *("power", "design", "nights", "drift", "sequential", "components"),
    ],
)
def test_outputs_fit_80_columns(made, command):
    store = ("--store", made / "s")
    gate = ("gate", "a-baseline-of-some-night", "what-asks-to-pass", *store)
    arguments = {
        "gate": gate,
        "article": (*gate, "--rule", "article"),
        "aa": ("aa", "a-baseline-of-some-night", *store),
        "compare": ("compare", "--file", made / "compare.csv", "--plan-tasks", 100),
        "agreement": ("agreement", made / "ratings.csv", "--resamples", 100),
        "tasks": ("tasks", "what-asks-to-pass", "--top", 3, *store),
        "against": ("tasks", "what-asks-to-pass", "--against", "a-baseline-of-some-night", "--top", 3, *store),
        "ranking": ("ranking", "a-baseline-of-some-night", "what-asks-to-pass", *store),
        "power": ("power", "planned", "--simulations", 100, "--delta", 0.1, *store),
        "design": ("design", "a-baseline-of-some-night", "--half-width", 0.05, "--price-generation", 1, *store),
        "nights": ("nights", "--file", made / "nights.csv", "--rule", "ewma"),
        "drift": ("drift", "a-baseline-of-some-night", *store),
        "sequential": ("sequential", "a-baseline-of-some-night", "--half-width", 0.1, *store),
        "components": ("components", "a-baseline-of-some-night", "--resamples", 100, *store),
    }[command]
    narrow = shown(*arguments, columns="80")
    assert max(map(len, narrow.splitlines())) <= 80
    assert not [line for line in narrow.splitlines() if line != line.rstrip()]
    if command != "compare":
        wide = shown(*arguments, columns="2000")
        assert set(narrow.split()) >= {word for word in wide.split() if len(word) < 40 and len(set(word)) > 1}


def test_a_narrow_table_breaks_texts_and_headers_and_no_number():
    header, row = ["a task", "some header of words"], ["one two three four five six", "0.500 [0.123, 0.877]"]
    for room in (60, 40, 30):
        head, rule, *lines = list(aligned(header, [row], [False, True], room=room))
        assert max(map(len, lines)) <= max(room, 12 + 20)
        assert sum(row[1] in line for line in lines) == 1
        assert " ".join(line.replace(row[1], "").strip() for line in lines).split() == row[0].split()
    assert (head, rule) == ("a task      some header of words", "-" * 10 + "  " + "-" * 20)


def test_two_tables_have_all_columns_of_one():
    columns = {name: ["-1.2345"] for name in (*_FIRST, "95 %", "SE total", "SE data", "SE pred.", "SE now", "z", "SE plan")}
    (one,) = _tables(columns, 140)
    first, second = _tables(columns, 80)
    assert [column.header for column in one.columns] == list(columns)
    assert [column.header for column in first.columns] == ["#", *_FIRST]
    assert [column.header for column in second.columns] == ["#", *(name for name in columns if name not in _FIRST)]
