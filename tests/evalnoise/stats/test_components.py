"""Variance components: published values, independent analyses of variance, unbiasedness by enumeration, what is undefined."""

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas import DataFrame
from statsmodels.formula.api import ols
from statsmodels.stats.anova import anova_lm

from evalnoise.stats.agreement.icc import icc_of_counts, one_way
from evalnoise.stats.nested.components import Level, components
from evalnoise.stats.nested.intervals import bootstrap_intervals
from evalnoise.stats.nested.sums import from_array, from_counts, from_long
from evalnoise.stats.variance import within_task_variance

REFERENCE = json.loads((Path(__file__).parents[2] / "reference" / "nested_components.json").read_text(encoding="utf-8"))


def seed7():
    """The grades of the paper's synthetic example, shape (300, 4, 3)."""
    published = REFERENCE["two_sources_seed7"]
    text = "".join(published["hex"])
    bits = "".join(f"{int(text[i : i + 3], 16):012b}" for i in range(0, len(text), 3))
    return np.array([int(bit) for bit in bits]).reshape(published["shape"])


def raws(found):
    return [part.raw for part in (found.task, found.generation, found.grader)]


def sums_of_squares(y):
    """Components of a balanced design from the textbook's sums of squares, in Fractions."""
    n, k, g = y.shape
    cells = [[[Fraction(int(v)) for v in output] for output in task] for task in y]
    outputs = [[sum(grades) / g for grades in task] for task in cells]
    tasks = [sum(means) / k for means in outputs]
    grand = sum(tasks) / n
    ss_e = sum((v - outputs[i][j]) ** 2 for i in range(n) for j in range(k) for v in cells[i][j])
    ss_g = g * sum((outputs[i][j] - tasks[i]) ** 2 for i in range(n) for j in range(k))
    ss_t = k * g * sum((mean - grand) ** 2 for mean in tasks)
    ms_t, ms_g, ms_e = ss_t / (n - 1), ss_g / (n * (k - 1)), ss_e / (n * k * (g - 1))
    return (ms_t - ms_g) / (k * g), (ms_g - ms_e) / g, ms_e


def paper(y):
    """The three lines of the paper."""
    _, k, g = y.shape
    grader = y.var(axis=2, ddof=1).mean()
    outputs = y.mean(axis=2)
    generation = outputs.var(axis=1, ddof=1).mean() - grader / g
    return outputs.mean(axis=1).var(ddof=1) - generation / k - grader / (k * g), generation, grader


@st.composite
def balanced(draw, most_score=1):
    n, k, g = (draw(st.integers(2, most)) for most in (6, 4, 4))
    cells = draw(st.lists(st.integers(0, most_score), min_size=n * k * g, max_size=n * k * g))
    return np.array(cells).reshape(n, k, g)


@st.composite
def unbalanced(draw):
    """Scores and which of them exist; at least one grade of each of two tasks."""
    y = draw(balanced(3))
    mask = np.array(draw(st.lists(st.booleans(), min_size=y.size, max_size=y.size))).reshape(y.shape)
    mask[:2, 0, 0] = True
    return y, mask


def test_the_published_components_of_seed_7():
    found = components(from_array(seed7()))
    assert raws(found) == pytest.approx(REFERENCE["two_sources_seed7"]["expected"], abs=1e-15)
    assert found.grader.raw == 17 / 180
    assert found.balanced
    assert (found.n_tasks, found.n_generations, found.n_grades, found.grades) == (300, (4, 4), (3.0, 3.0), 3600)
    assert sum(part.share for part in found.parts) == pytest.approx(1, abs=1e-15)


@settings(deadline=None, max_examples=25)
@given(balanced())
def test_a_balanced_design_is_the_balanced_analysis_of_variance_before_clipping(y):
    found = components(from_array(y))
    if min(y.shape[1:]) > 1:
        exact = [float(value) for value in sums_of_squares(y)]
        assert raws(found) == exact, "one rounding of the exact ratio"
        assert raws(found) == pytest.approx(paper(y), abs=1e-12)
        task, generation, grader = exact
        n, k, g = y.shape
        assert found.variance_of_mean == pytest.approx((task + generation / k + grader / (k * g)) / n, abs=1e-15)
        assert [part.clipped for part in found.parts] == [max(0.0, value) for value in exact]
        assert all(("negative" in part.note) == (part.raw < 0) for part in found.parts)
    assert found.variance_of_mean == pytest.approx(y.mean(axis=(1, 2)).var(ddof=1) / len(y), abs=1e-15)
    assert found.mean == pytest.approx(y.mean(), abs=1e-15)
    assert found.se == pytest.approx(found.variance_of_mean**0.5)


def expectations(task, output):
    """Sums of squares as quadratic forms, and the expectation of each for a unit of each component, by projection matrices."""
    size = len(task)

    def projection(labels):
        same = (labels[:, None] == labels).astype(float)
        return same / same.sum(axis=1, keepdims=True)

    mean, tasks, outputs = np.full((size, size), 1 / size), projection(task), projection(output)
    forms = (tasks - mean, outputs - tasks, np.eye(size) - outputs)
    covariances = ((task[:, None] == task).astype(float), (output[:, None] == output).astype(float), np.eye(size))
    return forms, np.array([[np.trace(form @ covariance) for covariance in covariances] for form in forms])


@settings(deadline=None, max_examples=25)
@given(unbalanced())
def test_an_unbalanced_design_equates_sequential_sums_of_squares_to_their_expectations(case):
    y, mask = case
    task, generation, _ = np.nonzero(mask)
    output = task * 10 + generation
    found = components(from_array(y, mask))
    forms, table = expectations(task, output)
    values = y[mask].astype(float)
    squares = np.array([values @ form @ values for form in forms])
    outputs, tasks = len(np.unique(output)), len(np.unique(task))
    levels = [0, *([1] if outputs > tasks else []), *([2] if len(task) > outputs else [])]
    solved = np.linalg.solve(table[np.ix_(levels, levels)], squares[levels])
    assert [part.raw for part in found.parts] == pytest.approx(solved, abs=1e-8)
    assert len(found.parts) == len(levels)
    means = [np.mean([y[i, j][mask[i, j]].mean() for j in range(y.shape[1]) if mask[i, j].any()]) for i in np.unique(task)]
    assert found.mean == pytest.approx(np.mean(means), abs=1e-12), "every output and every task has weight one"
    assert found.variance_of_mean == pytest.approx(np.var(means, ddof=1) / len(means), abs=1e-12)
    assert found.dropped == len(y) - tasks


@settings(deadline=None, max_examples=25)
@given(unbalanced(), st.randoms(use_true_random=False))
def test_missing_grades_are_absent_and_order_does_not_matter(case, random):
    y, mask = case
    task, generation, _ = np.nonzero(mask)
    rows = list(zip(task, generation, y[mask], strict=True))
    random.shuffle(rows)
    shuffled = [np.array(column) for column in zip(*rows, strict=True)]
    hidden = np.where(mask, y, 99)
    expected = raws(components(from_array(hidden, mask)))
    assert raws(components(from_long(shuffled[0], shuffled[0] * 10 + shuffled[1], shuffled[2]))) == expected
    padded = np.concatenate([hidden, np.full_like(y, 5)], axis=2)
    assert raws(components(from_array(padded, np.concatenate([mask, np.zeros_like(mask)], axis=2)))) == expected
    with_zeros = components(from_array(np.where(mask, y, 0)))
    if not mask.all() and y[mask].min() > 0:
        assert with_zeros.mean != components(from_array(hidden, mask)).mean


def test_against_statsmodels_on_an_unbalanced_example():
    rows = [
        *((0, 0, score) for score in (5.0, 6.5)), (0, 1, 7.0), *((1, 2, score) for score in (1.0, 2.0, 2.5)),
        *((1, 3, score) for score in (4.0, 3.0)), (2, 4, 9.0), *((2, 5, score) for score in (8.0, 8.5)), (2, 6, 6.0),
    ]  # fmt: skip
    task, output, score = (np.array(column) for column in zip(*rows, strict=True))
    found = components(from_long(task, output, score))
    frame = DataFrame({"t": task, "o": output, "y": score})
    table = anova_lm(*(ols(formula, frame).fit() for formula in ("y ~ 1", "y ~ C(t)", "y ~ C(o)")))
    ours = found.squares
    assert [ours.task * ours.df[0], ours.generation * ours.df[1]] == pytest.approx(list(table["ss_diff"][1:]))
    assert ours.grader * ours.df[2] == pytest.approx(table["ssr"].iloc[2])
    assert ours.df == (2, 4, 5)
    assert not found.balanced
    assert found.n_generations == (2, 3)


@pytest.mark.parametrize("flip", [Fraction(0), Fraction(1, 10)])
def test_the_estimates_are_unbiased_and_flips_compress_all_but_the_grader(flip):
    """Every outcome of 2 tasks x 2 generations x 2 grades, by its probability, in Fractions."""
    rates = (Fraction(1, 5), Fraction(3, 4))

    def chance(grades, rate):
        """The probability of one output's grades: it is right or wrong, and each verdict is flipped or not."""
        ones = sum(grades)
        return sum(p * (1 - f) ** ones * f ** (2 - ones) for p, f in ((rate, flip), (1 - rate, 1 - flip)))

    expected = [Fraction()] * 3
    for y in product((0, 1), repeat=8):
        weight = Fraction(1)
        for output in range(4):
            weight *= chance(y[2 * output : 2 * output + 2], rates[output // 2])
        if weight:
            squares = sums_of_squares(np.array(y).reshape(2, 2, 2))
            expected = [a + weight * b for a, b in zip(expected, squares, strict=True)]
    kept = (1 - 2 * flip) ** 2
    between = (rates[0] - rates[1]) ** 2 / 2
    assert expected == [kept * between, kept * sum(p * (1 - p) for p in rates) / 2, flip * (1 - flip)]


def test_equal_task_means_have_a_variance_of_exactly_0_whatever_the_runs():
    """Of 3 and of 7 grades without a common multiple in floats: means of a third are equal as fractions, and so not apart."""
    runs = np.array([3, 6, 21, 3 * 10**7, 3 * 49])
    found = components(from_counts(runs // 3, runs, one_output=True))
    assert (found.variance_of_mean, found.se, found.mean) == (0.0, 0.0, 1 / 3)
    near = components(from_counts(runs // 3 + [0, 0, 0, 1, 0], runs, one_output=True))
    apart = Fraction(1, 3 * 10**7)
    assert near.variance_of_mean == float(apart**2 * Fraction(4, 5) / 4 / 5)


def test_runs_averaged_before_the_variance_are_another_number():
    """A trap of public code: the variance between the means of runs is no variance within tasks."""
    y = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 1, 1]])
    found = components(from_array(y[:, :, None]))
    assert y.mean(axis=0).var(ddof=1) == 0
    assert found.together.raw == pytest.approx(2 / 9)
    assert found.together.of is Level.GENERATION_GRADER


def test_means_are_not_taken_for_what_they_are_means_of():
    """A trap of public code: the ICC without the correction for few repeats takes the grader's noise for the tasks' variance."""
    y = seed7()[:, :1, :]
    naive = y.mean(axis=2).var(ddof=1)
    found = components(from_array(y))
    assert found.icc == pytest.approx(one_way(y[:, 0, :]).icc, abs=1e-14)
    assert naive / (naive + found.grader.raw) == pytest.approx(0.6758, abs=1e-4)
    assert found.icc == pytest.approx(0.6365, abs=1e-4)


@settings(deadline=None, max_examples=25)
@given(balanced())
def test_the_graders_share_is_one_minus_the_icc(y):
    """Notes, section 6: one output of each task."""
    one = y[:, 0, :]
    found = components(from_array(one[:, None, :]))
    by_icc = one_way(one)
    if found.icc is not None and by_icc.icc is not None:
        assert found.icc == pytest.approx(by_icc.icc, abs=1e-12)
        assert found.grader.raw / found.total == pytest.approx(1 - by_icc.icc, abs=1e-12)
        if found.together.raw >= 0:
            assert found.grader.share == pytest.approx(1 - by_icc.icc, abs=1e-12)


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=8))
def test_counts_and_cells_are_the_same(table):
    passes, runs = (np.array(column) for column in zip(*table, strict=True))
    most = max(1, runs.max())
    y = (np.arange(most)[None, :] < passes[:, None]).astype(int)
    mask = np.arange(most)[None, :] < runs[:, None]
    for one_output in (False, True):
        cells = (y[:, None, :], mask[:, None, :]) if one_output else (y[:, :, None], mask[:, :, None])
        assert components(from_counts(passes, runs, one_output=one_output)) == components(from_array(*cells))


def test_runs_of_binary_outcomes_give_w():
    passes, runs = np.array([0, 1, 5, 3, 5]), np.full(5, 5)
    found = components(from_counts(passes, runs))
    assert found.together.raw == within_task_variance(passes, runs).w
    judged = components(from_counts(passes, runs, one_output=True))
    assert judged.grader.raw == found.together.raw
    assert judged.together.of is Level.TASK_GENERATION
    assert judged.icc == pytest.approx(icc_of_counts(passes, runs, seed=1, resamples=10).value, abs=1e-15)


def test_scores_that_are_no_integers():
    """Tenths are exact: three grades of 0.7 do not differ. Other numbers agree with floating point."""
    found = components(from_array(np.full((4, 2, 3), 0.7)))
    assert raws(found) == [0.0, 0.0, 0.0]
    assert found.icc_undefined == "no score differs from another"
    assert all(part.share is None for part in found.parts)
    generator = np.random.default_rng(4)
    rough = generator.normal(size=(20, 3, 4)) * 1e3
    assert raws(components(from_array(rough))) == pytest.approx(paper(rough), rel=1e-9)
    tenths = np.round(generator.random((20, 3, 4)), 1)
    exact = [float(value / 100) for value in sums_of_squares(np.rint(tenths * 10))]
    assert raws(components(from_array(tenths))) == exact
    large = generator.integers(0, 1000, size=(20, 3, 4)) * 1000
    assert raws(components(from_array(large))) == [float(value) for value in sums_of_squares(large)]
    shifted = rough + 12345.678
    assert raws(components(from_array(shifted))) == pytest.approx(raws(components(from_array(rough))), rel=1e-6)


@pytest.mark.parametrize(
    ("shape", "identified", "undefined"),
    [
        ((5, 1, 3), ["task+generation", "grader"], {"task": "confounded with task", "generation": "confounded with task"}),
        (
            (5, 3, 1),
            ["task", "generation+grader"],
            {"generation": "no generation has two grades", "grader": "no generation has two"},
        ),
        ((5, 1, 1), ["task+generation+grader"], dict.fromkeys(("task", "generation", "grader"), "only the sum")),
        ((1, 3, 3), ["generation", "grader"], {"task": "one task"}),
        ((1, 1, 3), ["grader"], {"task": "one task", "generation": "confounded with task"}),
        ((1, 1, 1), [], dict.fromkeys(("task", "generation", "grader"), "one task")),
        ((0, 3, 3), [], dict.fromkeys(("task", "generation", "grader"), "no grade")),
    ],
)
def test_what_a_design_cannot_tell_is_undefined_with_a_reason(shape, identified, undefined):
    found = components(from_array(np.random.default_rng(3).integers(0, 2, size=shape)))
    assert [part.of for part in found.parts] == identified
    for name in ("task", "generation", "grader"):
        part = getattr(found, name)
        assert (part.raw is None) == (name in undefined)
        assert undefined.get(name, "") in part.undefined
        assert bool(part.undefined) == (part.raw is None)
    assert (found.total is None) == (found.n_tasks < 2)
    assert (found.se is None) == (found.n_tasks < 2)
    if found.total is not None:
        assert found.total == pytest.approx(sum(part.raw for part in found.parts), abs=1e-15)
    assert (found.icc is None) == bool(found.icc_undefined)


def test_no_sum_leaves_its_integers():
    """Whole numbers near the limits of int64: against Python's own integers, for many grades of one task and for many tasks."""
    generator = np.random.default_rng(5)
    for n, k, g, most in ((2, 40, 50, 2**17), (300, 2, 2, 2**20), (3, 3, 3, 2**29), (3, 3, 3, 2**40)):
        y = generator.integers(most - 9, most, size=(n, k, g))
        found = components(from_array(y))
        exact = sums_of_squares(y) if most <= 2**20 or n == 3 else None
        assert raws(found) == pytest.approx([float(value) for value in exact], rel=1e-12)
        data = from_array(y)
        between = data.output_squares * data.grades - data.common * data.sums * data.sums
        within = data.squares * data.common - data.output_squares
        assert all(int(value) >= 0 for value in (*between, *within))


def test_numbers_of_grades_without_a_common_multiple_that_fits_into_anything():
    runs = np.arange(1, 900)
    passes = runs // 2
    found = components(from_counts(passes, runs, one_output=True))
    within = sum(Fraction(int(k) * int(n - k), int(n)) for k, n in zip(passes, runs, strict=True))
    assert found.grader.raw == float(within / int((runs - 1).sum()))
    assert found.mean == pytest.approx((passes / runs).mean())
    data = from_counts(passes, runs, one_output=True)
    got = bootstrap_intervals(data, seed=1, resamples=100)[Level.GRADER]
    assert got.lo < got.value < got.hi


def test_refusals():
    with pytest.raises(ValueError, match="shape"):
        from_array(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="missing grade is left out"):
        from_array(np.full((2, 2, 2), np.nan))
    with pytest.raises(ValueError, match="belongs to one task"):
        from_long([0, 1], [0, 0], [1.0, 0.0])
    with pytest.raises(ValueError, match="too large"):
        from_array(np.full((2, 2, 2), 1e300))
    assert components(from_array(np.full((2, 2, 2), np.nan), np.zeros((2, 2, 2), dtype=bool))).undefined == "no grade"
