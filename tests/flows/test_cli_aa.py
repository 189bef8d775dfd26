"""`evalnoise aa` as a user types it: what one arm says of itself."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from flows.cli import app
from tests.support.gate_store import draws, seal

N = 60
RATES = np.where(np.arange(N) < 25, 0.5, np.where(np.arange(N) < 50, 1.0, 0.0))


def run(*arguments, code):
    result = CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "200"})
    assert result.exit_code == code, (result.exit_code, result.output, result.exception)
    assert "Traceback" not in result.output
    return result.stdout if code == 0 else result.output


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("aa") / "store"
    seal(folder, "base", draws(RATES, 8, 1))
    seal(folder, "short", draws(RATES, 2, 4))
    return folder


def test_aa_says_what_an_arm_can_show(root):
    shown = run("aa", "base", "--store", root, code=0)
    for part in (
        "minimum detectable effect",
        "drift ratio",
        "published A/A bootstrap",
        "recommendation",
        "new runs of these tasks",
    ):
        assert part in shown
    found = json.loads(run("aa", "short", "--store", root, "--json", code=0))
    assert found["detectable"] == pytest.approx(2.8015852181 * (2 * found["w"] / (N * 2)) ** 0.5)
    assert found["article"]["mde"] > 0
    assert found["drift_ratio"] > 0
    assert found["drift_p"] == json.loads(run("drift", "short", "--store", root, "--json", code=0))["q"]["p_permuted"]
    assert (found["method"], found["drift_method"], found["resamples"]) == ("normal, plug-in w", "within-task permutation", 9999)
    assert found["seed"] is not None
    assert found["recommendation"].startswith("take ")
    assert run("aa", "base", "--store", root, "--alpha", "0.9", code=2)


def test_aa_of_little(tmp_path):
    seal(tmp_path, "once", draws(RATES, 1, 1))
    assert "measure it" in run("aa", "once", "--store", tmp_path, code=0)
    once = json.loads(run("aa", "once", "--store", tmp_path, "--json", code=0))
    assert (once["n_tasks"], once["n_replicates"], once["w"]) == (N, 1, None)
    drifting = draws(RATES, 10, 1)
    drifting[:25, 5:] = 0
    seal(tmp_path, "drifting", drifting)
    assert "differ by more than chance" in run("aa", "drifting", "--store", tmp_path, code=0)
    seal(tmp_path, "still", np.ones((30, 3)))
    shown = run("aa", "still", "--store", tmp_path, code=0)
    assert "effect     undefined (nothing varied" in shown
    still = json.loads(run("aa", "still", "--store", tmp_path, "--json", code=0))
    assert (still["w"], still["detectable"], still["significant"]) == (0, None, None)
    assert still["undefined"]
