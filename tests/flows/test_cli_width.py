"""What gate, compare, agreement and aa print fits 80 columns, and says as much as in wider ones."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli import app
from flows.views.compare import _FIRST, _tables
from tests.support.gate_store import draws, seal

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
    rng = np.random.default_rng(0)
    rows = [f"{name},t{task},{sample},{int(rng.random() < 0.5)}" for name in NAMES for task in range(12) for sample in range(3)]
    (folder / "compare.csv").write_text("model,task,sample,score\n" + "\n".join(rows) + "\n")
    rated = [f"q{i},{name},{rng.choice(list('bcdefg')) * 9}" for name in NAMES for i in range(20) for _ in range(2)]
    (folder / "ratings.csv").write_text("item,rater,rating\n" + "\n".join(rated) + "\n")
    return folder


@pytest.mark.parametrize("command", ["gate", "article", "aa", "compare", "agreement"])
def test_outputs_fit_80_columns(made, command):
    gate = ("gate", "a-baseline-of-some-night", "what-asks-to-pass", "--store", made / "s")
    arguments = {
        "gate": gate,
        "article": (*gate, "--rule", "article"),
        "aa": ("aa", "a-baseline-of-some-night", "--store", made / "s"),
        "compare": ("compare", "--file", made / "compare.csv", "--plan-tasks", 100),
        "agreement": ("agreement", made / "ratings.csv", "--resamples", 100),
    }[command]
    narrow = shown(*arguments, columns="80")
    assert max(map(len, narrow.splitlines())) <= 80
    assert not [line for line in narrow.splitlines() if line != line.rstrip()]
    if command != "compare":
        wide = shown(*arguments, columns="2000")
        assert set(narrow.split()) >= {word for word in wide.split() if len(word) < 40 and len(set(word)) > 1}


def test_two_tables_have_all_columns_of_one():
    columns = {name: ["-1.2345"] for name in (*_FIRST, "95 %", "SE total", "SE data", "SE pred.", "SE now", "z", "SE plan")}
    (one,) = _tables(columns, 140)
    first, second = _tables(columns, 80)
    assert [column.header for column in one.columns] == list(columns)
    assert [column.header for column in first.columns] == ["#", *_FIRST]
    assert [column.header for column in second.columns] == ["#", *(name for name in columns if name not in _FIRST)]
