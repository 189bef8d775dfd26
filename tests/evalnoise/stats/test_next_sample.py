"""Where the next sample should go: the derivatives by finite differences, and the paper's order of steps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.stats.nested.next_sample import Step, next_sample
from evalnoise.stats.planning.design import Prices, Variances

part, price = st.floats(0.001, 0.5), st.floats(0.01, 5.0)


def asked(task, generation, grader, *, prices=None, shape=(50, 3, 3), **options):
    n, k, g = shape
    parts = Variances(task=task, generation=generation, grader=grader)
    return next_sample(parts, prices or Prices(generation=1.0, grade=0.1), n_tasks=n, generations=k, grades=g, **options)


@given(
    st.tuples(part, part, part), st.tuples(price, price, price), st.tuples(st.integers(2, 60), st.integers(1, 5), st.integers(1, 5))
)
def test_gains_are_the_slopes_of_variance_by_cost(parts, priced, shape):
    (task, generation, grader), (p_g, p_r, p_t), (n, k, g) = parts, priced, shape
    prices = Prices(generation=p_g, grade=p_r, task=p_t)

    def variance(n, k, g):
        return (task + generation / k + grader / (k * g)) / n

    def cost(n, k, g):
        return n * (p_t + k * (p_g + g * p_r))

    found = asked(task, generation, grader, prices=prices, shape=(n, k, g))
    assert found.variance == pytest.approx(variance(n, k, g))
    for axis, gain in enumerate(found.gains):
        more, less = ([n, k, g], [n, k, g])
        more[axis], less[axis] = more[axis] * 1.0001, less[axis] * 0.9999
        slope = (variance(*less) - variance(*more)) / (cost(*more) - cost(*less))
        assert gain.per_price == pytest.approx(slope, rel=1e-5)
        endless = [n, k, g]
        endless[axis] = 10**12
        assert gain.removes == pytest.approx(variance(n, k, g) - variance(*endless), rel=1e-6)
    chosen = next(gain for gain in found.gains if gain.step == found.then)
    assert chosen.per_price == max(gain.per_price for gain in found.gains)


def test_the_papers_order():
    noisy = asked(0.0797, 0.0755, 0.0944)
    assert (noisy.step, noisy.then) == (Step.FIX_GRADER, Step.TASKS)
    assert noisy.sentence.startswith("Fix the grader first")
    assert "0.0944 is above that of generations, 0.0755" in noisy.sentence
    assert asked(0.2, 0.0005, 0.001).step is Step.TASKS, "a grader without weight is not the first thing to mend"
    fixed_benchmark = asked(0.02, 0.2, 0.01, without=(Step.TASKS,))
    assert fixed_benchmark.step is Step.GENERATIONS
    assert "goes" not in fixed_benchmark.sentence
    assert "of the mean's variance 23 % between tasks, 76 % generation, 1 % grader" in fixed_benchmark.sentence
    assert "by: generations 6.95e-06, grades" in fixed_benchmark.sentence
    dear = asked(0.01, 0.2, 0.01, prices=Prices(generation=1.0, grade=0.1, task=1000.0))
    assert dear.step is Step.GENERATIONS
    cheap_grades = asked(0.001, 0.02, 0.019, prices=Prices(generation=100.0, grade=0.01, task=1.0), shape=(50, 3, 1))
    assert cheap_grades.step is Step.GRADES


@given(part, part, part, st.integers(1, 6), st.integers(1, 6))
def test_tasks_that_cost_nothing_beat_generations(task, generation, grader, k, g):
    found = asked(task, generation, grader, shape=(50, k, g))
    tasks, generations, _ = found.gains
    assert tasks.per_price >= generations.per_price


def test_what_is_confounded_is_no_advice():
    frozen = asked(0.1, 0.0, 0.05, shape=(50, 1, 3), without=(Step.GENERATIONS,))
    assert frozen.step is Step.TASKS, "nothing is known of generations, so the grader is not said to be noisier than they are"
    assert "86 % between tasks and generations, 14 % grader; one unit of price lowers it by: tasks" in frozen.sentence
    runs = asked(0.01, 0.2, 0.0, shape=(50, 5, 1), without=(Step.TASKS, Step.GRADES))
    assert runs.step is Step.GENERATIONS
    assert "80 % generation+grader; one unit of price lowers it by: generations 2.91e-06." in runs.sentence


def test_no_advice_and_free_grades():
    assert asked(0.0, 0.0, 0.0).undefined.startswith("nothing varied")
    only = asked(0.1, 0.0, 0.0, without=(Step.TASKS,))
    assert only.undefined == "all of the variance is between tasks: only more of them lower it"
    assert only.step is Step.NONE
    free = asked(0.1, 0.05, 0.01, prices=Prices(generation=1.0))
    assert free.gains[2].per_price is None
    assert "grades free" in free.sentence
    assert free.step is Step.GRADES
    assert asked(0.1, 0.05, 0.0, prices=Prices(generation=1.0)).step is Step.TASKS, "what is free and removes nothing is no advice"
    with pytest.raises(ValueError, match="at least 1 task"):
        asked(0.1, 0.1, 0.1, shape=(0, 1, 1))
