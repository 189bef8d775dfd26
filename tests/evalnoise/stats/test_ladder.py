"""All conditions together: the same numbers as one by one, from draws that are shared."""

import numpy as np
import pytest

from evalnoise.stats import ladder as module
from evalnoise.stats.contrasts import w_contrast, w_contrast_benchmark
from evalnoise.stats.intervals import score_cautious, w_benchmark, w_gaffke, w_population_limit
from evalnoise.stats.ladder import ladder


@pytest.fixture
def study():
    generator = np.random.default_rng(6)
    rates = generator.beta(0.3, 0.3, 80)
    live, again = generator.binomial(10, rates), generator.binomial(10, rates)
    return np.stack([live, again, np.where(rates > 0.5, 10, 0)]), np.full((3, 80), 10)


def test_every_estimate_of_every_condition(study):
    found = ladder(*study, seed=0, resamples=400)
    names = ["score", "score", "score_run_sd", "w", "w", "w", "variable_tasks", "variable_share"]
    assert [e.estimate for e in found.estimates] == names * 3 + ["score", "w"]
    assert found.find(0, "w", covers="benchmark") == w_benchmark(study[0][0], study[1][0])
    assert found.find(2, "w", method="gaffke") == w_gaffke(study[0][2], study[1][2], seed=0, resamples=400)
    limit = w_population_limit(study[0][2], study[1][2])
    assert found.estimates[-1].result == limit
    assert found.estimates[-2].result == score_cautious(study[0][2], study[1][2])
    keys = [(e.condition, e.estimate, e.result.method, e.result.covers) for e in found.estimates]
    assert len(set(keys)) == len(keys), "one row per condition, estimate, method and target"
    with pytest.raises(KeyError):
        found.find(0, "w")


@pytest.mark.parametrize(("varied", "rows"), [(0, 2), (19, 2), (20, 1)])
def test_a_score_of_few_varying_tasks_has_a_cautious_interval_beside_the_plain_one(varied, rows):
    passes = np.r_[np.full(varied, 3), np.full(30, 10)]
    found = ladder([passes], [np.full(len(passes), 10)], seed=0, resamples=50)
    made = [e.result for e in found.estimates if e.estimate == "score" and e.result.covers == "benchmark"]
    assert len(made) == rows
    assert len({(e.value, e.n_tasks, e.n_replicates) for e in made}) == 1, "views take either row's value"


def test_variable_tasks_are_counted(study):
    found = ladder(*study, seed=0, resamples=100)
    count = found.find(0, "variable_tasks")
    assert count.value == sum(0 < k < 10 for k in study[0][0])
    assert count.lo < count.value < count.hi
    assert count.value == pytest.approx(80 * found.find(0, "variable_share").value)


def test_contrasts_take_the_differences_of_their_conditions_draws(study):
    draws = module._Draws(*study, seed=3, resamples=300)
    tasks = draws.tasks("w", 0, 1, 2)
    a, b, c = (draws.of("w", tasks, i) for i in range(3))
    assert len(draws.made) == 1, "one bootstrap for all"
    found = ladder(*study, seed=3, resamples=300)
    percentile = {
        (x.a, x.b): x.contrast.result for x in found.contrasts if (x.estimate, x.contrast.result.method[:10]) == ("w", "percentile")
    }
    for pair, difference in (((0, 1), a - b), ((0, 2), a - c), ((1, 2), b - c)):
        assert [percentile[pair].lo, percentile[pair].hi] == pytest.approx(np.quantile(difference, [0.025, 0.975]), rel=1e-12)
    assert c.max() == 0
    alone = found.find(0, "w", method="percentile task bootstrap")
    assert (percentile[0, 2].lo, percentile[0, 2].hi) == (alone.lo, alone.hi), "replay adds nothing, and the draws are the same"


def test_only_the_pairs_that_are_asked_for(study):
    found = ladder(*study, seed=0, pairs=[(2, 0)], resamples=100)
    assert {(x.a, x.b) for x in found.contrasts} == {(2, 0)}
    (made,) = [x.contrast for x in found.contrasts if x.contrast.result.method.startswith("variance recovered")]
    assert made == w_contrast_benchmark(study[0][2], study[1][2], study[0][0], study[1][0])


def test_conditions_with_different_tasks(study):
    passes, runs = study
    runs = runs.copy()
    runs[1, :30] = 0
    passes = np.where(runs > 0, passes, 0)
    found = ladder(passes, runs, seed=0, resamples=200)
    by_pair = {
        (x.a, x.b): x.contrast for x in found.contrasts if x.estimate == "w" and x.contrast.result.method.startswith("percentile")
    }
    assert [by_pair[p].result.n_tasks for p in ((0, 1), (0, 2), (1, 2))] == [50, 80, 50]
    alone = w_contrast(passes[0], runs[0], passes[2], runs[2], seed=0, resamples=4000).result
    assert by_pair[0, 2].result.value == alone.value
    assert by_pair[0, 2].result.lo == pytest.approx(alone.lo, abs=0.01)


def test_missing_runs_and_single_runs(study):
    passes, runs = np.minimum(study[0], 1), study[1].copy()
    runs[0, :] = 1
    runs[2, :79] = 0
    passes = np.where(runs > 0, passes, 0)
    found = ladder(passes, runs, seed=0, resamples=100)
    assert found.find(0, "w", method="percentile task bootstrap").undefined
    assert found.find(0, "score", covers="population").lo is not None
    assert found.find(2, "score", method="percentile task bootstrap").undefined == "one task says nothing about other tasks"


def test_shapes_are_checked():
    with pytest.raises(ValueError, match=r"one shape \(C, N\)"):
        ladder([1, 2], [3, 3], seed=0)
    with pytest.raises(ValueError, match="cannot be"):
        ladder([[4, 2]], [[3, 3]], seed=0)
