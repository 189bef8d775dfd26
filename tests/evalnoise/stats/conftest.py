"""The published figures and the pass counts that reproduce them."""

import json
from pathlib import Path

import numpy as np
import pytest

REFERENCE = json.loads((Path(__file__).parents[2] / "reference" / "noise_floor.json").read_text(encoding="utf-8"))


def counts_of(row):
    """Passes and runs of a published condition, shape (N,) each."""
    passes = np.repeat([int(k) for k in row["counts"]], list(row["counts"].values()))
    return passes, np.full(len(passes), REFERENCE["replicates"])


def condition(stack, benchmark, name):
    (row,) = [r for r in REFERENCE["conditions"] if (r["stack"], r["benchmark"], r["condition"]) == (stack, benchmark, name)]
    return row


@pytest.fixture(scope="session")
def figures():
    return REFERENCE


@pytest.fixture
def published():
    """The counts of a published condition by stack, benchmark and name."""
    return lambda *key: counts_of(condition(*key))


def pytest_generate_tests(metafunc):
    if "row" in metafunc.fixturenames:
        needed = getattr(metafunc.function, "needed", ())
        rows = [row for row in REFERENCE["conditions"] if all(key in row for key in needed)]
        metafunc.parametrize("row", rows, ids=[f"{r['stack']} {r['benchmark']} {r['condition']}" for r in rows])
    if "printed_contrast" in metafunc.fixturenames:
        rows = REFERENCE["contrasts"]
        metafunc.parametrize("printed_contrast", rows, ids=[f"{r['stack']} {r['benchmark']} {r['a']} - {r['b']}" for r in rows])
