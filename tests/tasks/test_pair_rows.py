"""Rows of `contrasts` between stacks: one headline a pair, noise in parts, Holm over the pairs of a condition."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats as reference

from evalnoise.readers.counts import Counts
from evalnoise.stats.contrasts import Finding
from evalnoise.stats.gates.cmh import cmh_test
from evalnoise.stats.models.pairs import all_pairs, paired_noise
from evalnoise.stats.models.samples import Samples
from schemas.study import Study
from tasks.analysis import pairs
from tests.support import stages

PLACE = "stack = 'a' and stack_b = 'b' and condition_a = 'live'"


def study(names: str, **changes) -> Study:
    one = stages.body()["stacks"][0]
    stacks = [{**one, "name": name, "provider": {**one["provider"], "seed": n}} for n, name in enumerate(names)]
    return Study.model_validate(stages.body(stacks=stacks, **changes))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("pairs") / "s"
    stages.run(study("abc"), root, limit=10)
    return root


def outcomes(store, stack, condition="live"):
    """Passes of each cell, shape (N, R)."""
    found = stages.rows(
        store,
        f"select position, replicate, (outcome = 'pass')::int from outcomes where stack = '{stack}' and condition = '{condition}'",
    )
    table = np.zeros((1 + max(row[0] for row in found), 1 + max(row[1] for row in found)), dtype=int)
    for position, replicate, passed in found:
        table[position, replicate] = passed
    return table


def test_one_headline_for_each_pair_and_condition(store) -> None:
    query = (
        "select stack, stack_b, condition_a, condition_b, method from contrasts where stack <> stack_b and headline order by all"
    )
    found = stages.rows(store, query)
    wanted = [(a, b, c, c, "paired t") for a, b in ("ab", "ac", "bc") for c in ("cold", "live", "replay")]
    assert found == sorted(wanted)
    assert stages.rows(store, "select count(*) from contrasts where stack <> stack_b") == [(3 * 3 * 6,)]
    assert stages.rows(store, "select count(*) from contrasts where not contains(sentence, finding)") == [(0,)]


def test_the_parts_are_the_papers(store) -> None:
    a, b = outcomes(store, "a"), outcomes(store, "b")
    noise = paired_noise(a, b)
    query = f"select estimate, value, covers from contrasts where {PLACE} and method = 'paired noise components' order by 1"
    data, prediction, total = stages.rows(store, query)
    assert data == ("se_data", None if noise.se_data is None else pytest.approx(noise.se_data, abs=1e-15), "population")
    assert prediction == ("se_prediction", pytest.approx(noise.se_prediction, abs=1e-15), "benchmark")
    assert total == ("se_total", pytest.approx(noise.se_total, abs=1e-15), "population")


def test_tests_and_their_p_values(store) -> None:
    a, b = outcomes(store, "a"), outcomes(store, "b")
    query = f"""
        select method, value, se, p_value, covers from contrasts where {PLACE} and estimate = 'score' order by method
    """
    cmh, t, runs = stages.rows(store, query)
    wanted = reference.ttest_rel(a.mean(axis=1), b.mean(axis=1))
    assert t[0] == "paired t"
    assert t[1:4] == pytest.approx(
        (a.mean() - b.mean(), (a.mean(axis=1) - b.mean(axis=1)).std(ddof=1) / np.sqrt(10), wanted.pvalue)
    )
    exact = cmh_test(a.sum(axis=1), [3] * 10, b.sum(axis=1), [3] * 10)
    assert cmh == ("exact CMH test, mid-p", pytest.approx(a.mean() - b.mean()), None, pytest.approx(exact.p_two_sided), "benchmark")
    se = np.sqrt(sum(x.var(axis=1, ddof=1).mean() for x in (a, b)) / 30)
    assert runs[2:4] == pytest.approx((se, 2 * reference.norm.sf(abs(a.mean() - b.mean()) / se)))
    assert (t[4], runs[4]) == ("population", "benchmark")


def test_holm_over_the_pairs_of_a_condition(store) -> None:
    query = """
        select p_value, p_adjusted from contrasts
        where stack <> stack_b and condition_a = 'live' and method = 'paired t' order by p_value
    """
    found = stages.rows(store, query)
    highest = 0.0
    for place, (p, adjusted) in enumerate(found):
        highest = max(highest, min(1.0, (len(found) - place) * p))
        assert adjusted == pytest.approx(highest)
    assert stages.rows(store, "select count(*) from contrasts where stack = stack_b and p_adjusted is not null") == [(0,)]


def test_replays_say_nothing_about_new_runs(store) -> None:
    query = """
        select estimate, method, value is null, p_value is null, lo is null, undefined from contrasts
        where stack = 'a' and stack_b = 'b' and condition_a = 'replay' and covers <> 'population' order by all
    """
    reason = "replicates that repeat one recorded run say nothing about new runs"
    assert stages.rows(store, query) == [
        ("score", "exact CMH test, mid-p", False, True, True, reason),
        ("score", "plug-in variance", False, True, True, reason),
        ("se_prediction", "paired noise components", True, True, True, reason),
    ]


@pytest.mark.parametrize("swap", [False, True])
def test_a_test_that_points_against_the_difference_is_not_real(swap) -> None:
    """Five tasks with many runs speak for a, twenty with few for b: the test is heard by runs, the difference by tasks."""
    many, few = np.repeat([1, 0], [5, 20]), np.repeat([0, 1], [5, 20])
    runs = 40 * many + 2 * few
    a, b = 30 * many, 10 * many + few
    arrays = (b, runs, a, runs) if swap else (a, runs, b, runs)
    noise = all_pairs(Samples(runs=np.stack(arrays[1::2]), sums=np.stack(arrays[::2]), squares=np.stack(arrays[::2]), unit=1)).pair(
        0
    )
    found, exact = pairs._counted(arrays, noise, 0.05), cmh_test(*arrays)
    assert (noise.mean < 0) is (exact.p_greater < exact.p_less) is not swap
    assert found.p_value == exact.p_two_sided < 1e-6
    assert found.finding is Finding.NOT_RESOLVED
    assert "points against this difference, because runs differ between tasks" in found.result.note
    one, other = (Counts(name, "live", arrays[2 * i], arrays[2 * i + 1], 0) for i, name in enumerate("xy"))
    said = pairs._sentence(found, one, other, found.p_value)
    assert "not resolved" in said
    assert pairs.OPPOSITE in said
    # Of equal runs the two agree.
    even = np.full(25, 40)
    same = (a, even, b, even) if not swap else (b, even, a, even)
    noise = all_pairs(Samples(runs=np.stack(same[1::2]), sums=np.stack(same[::2]), squares=np.stack(same[::2]), unit=1)).pair(0)
    found = pairs._counted(same, noise, 0.05)
    assert (found.finding, pairs.OPPOSITE in found.result.note) == (Finding.REAL, False)


def test_many_stacks_are_compared_with_the_first(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(pairs, "MOST_PAIRS", 2)
    plan = study("abc", conditions=[{"name": "live", "kind": "live"}], replicates=1)
    stages.run(plan, tmp_path / "s", limit=4)
    found = stages.rows(
        tmp_path / "s", "select stack, stack_b, note from contrasts where headline and stack <> stack_b order by 1, 2"
    )
    assert [row[:2] for row in found] == [("a", "b"), ("a", "c")]
    assert all("evalnoise compare" in row[2] for row in found)
    # One run each: the sign test, and no parts.
    query = "select distinct method from contrasts where stack <> stack_b and estimate = 'score' order by 1"
    assert stages.rows(tmp_path / "s", query) == [("exact sign test",), ("paired t",), ("plug-in variance",)]
    undefined = "select distinct undefined from contrasts where estimate in ('se_data', 'se_prediction')"
    assert stages.rows(tmp_path / "s", undefined) == [
        ("one sample per task cannot be split into data and prediction noise: that needs 2",)
    ]
