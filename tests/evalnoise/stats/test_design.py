"""Half widths as published, and the cheapest design against trying every one."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from evalnoise.stats.planning.budget import rerun_budget, z_sum
from evalnoise.stats.planning.design import (
    Bounds,
    Prices,
    Variances,
    cheapest_for_effect,
    cheapest_for_half_width,
    floor,
    half_width,
    table,
)

PUBLISHED = json.loads((Path(__file__).parents[2] / "reference" / "two_sources.json").read_text(encoding="utf-8"))
COMPONENTS = Variances(**PUBLISHED["components"])
Z = norm.ppf(0.975)
PRICES = Prices(generation=0.01, grade=0.001)


@pytest.mark.parametrize("cell", PUBLISHED["half_widths_points"], ids=lambda c: f"n{c['n']}K{c['K']}G{c['G']}")
def test_published_half_widths(cell):
    found = 100 * half_width(COMPONENTS, cell["n"], cell["K"], cell["G"])
    # The article takes 1.96 for the quantile; at that, every printed digit is the same.
    assert round(found * 1.96 / Z, 3) == cell["points"]
    assert found == pytest.approx(cell["points"], abs=6e-4)


def test_published_floor():
    printed = PUBLISHED["floor_points"]
    assert round(100 * floor(COMPONENTS, printed["n"]) * 1.96 / Z, 3) == printed["points"]
    assert half_width(COMPONENTS, 200, 10**9, 10**9) == pytest.approx(floor(COMPONENTS, 200), abs=1e-9)


def test_table():
    cells = table(COMPONENTS, [200, 400], [1, 3], [1, 5], level=0.9)
    assert [(c.n_tasks, c.generations, c.grades) for c in cells] == [
        (n, k, g) for n in (200, 400) for k in (1, 3) for g in (1, 5)
    ]  # fmt: skip
    assert cells[3].half_width == half_width(COMPONENTS, 200, 3, 5, level=0.9)
    assert cells[3].half_width == pytest.approx(norm.ppf(0.95) * math.sqrt((0.1 + 0.08 / 3 + 0.03 / 15) / 200))


def every_design(components, prices, variance, bounds, most):
    """The cheapest by trying all K and G up to `most`; None where none suffices."""
    best = None
    for k in range(1, min(most, bounds.generations or most) + 1):
        for g in range(1, min(most, bounds.grades or most) + 1):
            n = max(1, math.ceil(components.of_mean(1, k, g) / variance * (1 - 1e-12)))
            if bounds.tasks is None or n <= bounds.tasks:
                one = (prices.of_design(n, k, g), n, k, g)
                best = one if best is None else min(best, one)
    return best


PART = st.one_of(st.just(0.0), st.floats(0.001, 0.2))
PRICE = st.integers(0, 20).map(lambda cents: cents / 100)
BOUND = st.one_of(st.none(), st.integers(1, 40))


@settings(deadline=None, max_examples=150)
@given(
    st.builds(Variances, task=PART, generation=PART, grader=PART),
    st.builds(Prices, generation=PRICE, grade=PRICE, task=PRICE),
    st.builds(Bounds, tasks=BOUND, generations=BOUND, grades=BOUND),
    st.floats(0.08, 0.5),
)
def test_cheapest_is_the_best_of_all(components, prices, bounds, target):
    assume(prices.generation + prices.grade > 0)
    assume(prices.grade > 0 or components.grader == 0 or bounds.grades is not None)
    found = cheapest_for_half_width(components, prices, target, bounds=bounds)
    variance = (target / Z) ** 2
    best = every_design(components, prices, variance, bounds, 90)
    if best is None:
        # With more than 90 of each nothing changes, or only a design that the search found.
        assert found.n_tasks is None or max(found.generations, found.grades) > 90
        if found.n_tasks is None:
            assert "no design of at most" in found.undefined
        return
    assert found.cost == pytest.approx(min(found.cost, best[0]), rel=1e-12)
    assert found.cost <= best[0] * (1 + 1e-12)
    if max(found.generations, found.grades) <= 90:
        assert (found.n_tasks, found.generations, found.grades) == best[1:] or found.cost == pytest.approx(best[0], rel=1e-12)
    assert found.half_width <= target * (1 + 1e-9)
    assert components.of_mean(found.n_tasks, found.generations, found.grades) == found.variance


def test_one_more_task_is_not_asked_for():
    """A target that a design just reaches."""
    for n in range(1, 400, 7):
        target = half_width(COMPONENTS, n, 1, 1)
        found = cheapest_for_half_width(COMPONENTS, PRICES, target, bounds=Bounds(generations=1, grades=1))
        assert found.n_tasks == n


def test_dear_tasks_call_for_more_generations():
    cheap = cheapest_for_half_width(COMPONENTS, PRICES, 0.05)
    dear = cheapest_for_half_width(COMPONENTS, Prices(generation=0.01, grade=0.001, task=1.0), 0.05)
    assert (cheap.n_tasks, cheap.generations, cheap.grades) == (323, 1, 1)
    assert dear.n_tasks < cheap.n_tasks
    assert dear.generations > 1


def test_fixed_benchmark():
    found = cheapest_for_half_width(COMPONENTS, PRICES, 0.05, bounds=Bounds(tasks=200))
    assert (found.n_tasks, found.generations, found.grades) == (200, 3, 3)
    none = cheapest_for_half_width(COMPONENTS, PRICES, 0.04, bounds=Bounds(tasks=200))
    assert (none.n_tasks, none.cost, none.covers) == (None, None, "")
    assert "0.04383" in none.undefined
    bounded = cheapest_for_half_width(COMPONENTS, PRICES, 0.05, bounds=Bounds(tasks=200, generations=2, grades=1))
    assert "within the other bounds" in bounded.undefined


def test_effect():
    """Two arms on the same tasks: each generation is paid twice, and the standard error is z_sum times shorter than the effect."""
    difference = Variances(task=0.02, generation=0.06, grader=0.0)
    found = cheapest_for_effect(difference, Prices(generation=1.0), 0.05)
    assert found.half_width == pytest.approx(z_sum(0.05, 0.8) * math.sqrt(found.variance))
    assert found.half_width <= 0.05
    assert found.cost == 2 * found.n_tasks * found.generations
    with_tasks = cheapest_for_effect(difference, Prices(generation=1.0, task=10.0), 0.05)
    assert with_tasks.cost == with_tasks.n_tasks * (10 + 2 * with_tasks.generations)
    assert cheapest_for_effect(difference, Prices(generation=1.0), 0.05, power=0.9).cost > found.cost


def test_without_between_task_variance_it_is_the_rerun_budget():
    """Noise Floor's budget is the design with task = 0 and generation = w_a + w_b."""
    found = cheapest_for_effect(
        Variances(task=0.0, generation=2 * 0.03013, grader=0.0), Prices(generation=1.0, task=1e6), 0.02, bounds=Bounds(tasks=164)
    )
    needed = 2 * 0.03013 * (z_sum(0.05, 0.8) / 0.02) ** 2
    assert (found.n_tasks, found.generations) == (1, math.ceil(needed))
    assert 7 * 164 < needed <= rerun_budget(0.03013, 0.03013, 164, 0.02) * 164
    all_tasks = cheapest_for_half_width(Variances(task=0.0, generation=0.0, grader=0.0), Prices(generation=1.0), 0.1)
    assert (all_tasks.n_tasks, all_tasks.generations, all_tasks.grades) == (1, 1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: half_width(Variances(task=-0.1, generation=0, grader=0), 1, 1, 1), "task component"),
        (lambda: half_width(COMPONENTS, 0, 1, 1), "at least 1 task"),
        (lambda: cheapest_for_half_width(COMPONENTS, PRICES, 0.0), "above 0"),
        (lambda: cheapest_for_half_width(COMPONENTS, Prices(generation=-1.0), 0.1), "price of a generation"),
        (lambda: cheapest_for_half_width(COMPONENTS, Prices(generation=0.0), 0.1), "no cheapest number of them"),
        (lambda: cheapest_for_half_width(COMPONENTS, Prices(generation=1.0), 0.1), "a grade that costs nothing"),
        (lambda: cheapest_for_half_width(COMPONENTS, PRICES, 0.1, bounds=Bounds(tasks=0)), "at least 1"),
        (lambda: cheapest_for_half_width(Variances(task=0, generation=0.1, grader=0), PRICES, 1e-6), "too small"),
    ],
)
def test_mistakes(call, message):
    with pytest.raises(ValueError, match=message):
        call()
