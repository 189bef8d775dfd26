"""Options of the statistics may be given as plain text: the same as their enum, and what is unknown is refused."""

import dataclasses

import numpy as np
import pytest

from evalnoise.stats.agreement.kappa import Weights, cohen_kappa
from evalnoise.stats.agreement.many import Metric, krippendorff_alpha
from evalnoise.stats.estimate import Covers, Estimate
from evalnoise.stats.gates.gate import GateRule, gate
from evalnoise.stats.gates.side import side_of
from evalnoise.stats.multiplicity import Adjustment, adjusted, adjusted_array
from evalnoise.stats.nested.next_sample import Step, next_sample
from evalnoise.stats.nights import Rule, control_chart, false_alarms, limit_factors
from evalnoise.stats.planning.design import Prices, Variances
from evalnoise.stats.planning.power import Effect, PowerTest, achieved_power, lowered
from evalnoise.stats.planning.ranking import order
from evalnoise.stats.reliability import Of, task_values
from evalnoise.stats.sequential import betting, robbins

RNG = np.random.default_rng(0)
K, L = np.array([3, 5, 1, 4, 2, 0]), np.array([2, 5, 3, 1, 4, 1])
R = np.full(6, 5)
P = np.array([0.01, 0.02, 0.04])
RATINGS = RNG.integers(0, 4, (30, 3))
TABLE = np.array([[9, 3, 1], [2, 8, 3], [4, 1, 9]])
NIGHTS = RNG.normal(0.7, 0.01, 30)
RATES = np.linspace(0.2, 0.9, 20)
SCORES = (RNG.random((2, 30, 4)) < 0.6).astype(float)
TARGETS = (Covers.BENCHMARK, Covers.POPULATION)

CASES = {
    "gate": (TARGETS, lambda x: gate(side_of(SCORES[0]), side_of(SCORES[1]), GateRule(claim=x))),
    "adjusted": (Adjustment, lambda x: adjusted(P, method=x)),
    "adjusted_array": (Adjustment, lambda x: adjusted_array(P, method=x)),
    "krippendorff_alpha": (Metric, lambda x: krippendorff_alpha(RATINGS, metric=x, seed=0, resamples=99)),
    "cohen_kappa": (Weights, lambda x: cohen_kappa(TABLE, weights=x, seed=0, resamples=99)),
    "limit_factors": (Rule, lambda x: limit_factors(5, x)),
    "control_chart": (Rule, lambda x: control_chart(NIGHTS, x)),
    "false_alarms": (Rule, lambda x: false_alarms(RATES, 5, night_sd=0.01, rule=x, months=200, seed=0)),
    "task_values": (Of, lambda x: task_values(K, R, 2, of=x)),
    "lowered": (Effect, lambda x: lowered(RATES, 0.1, x)),
    "achieved_power": (Effect, lambda x: achieved_power(K, R, delta=0.1, runs_a=4, effect=x, simulations=50, seed=0)),
    "achieved_power by": (PowerTest, lambda x: achieved_power(K, R, delta=0.1, runs_a=4, tests=(x,), simulations=50, seed=0)),
    "order": (TARGETS, lambda x: order(K, R, L, R, covers=x)),
    "robbins": (TARGETS, lambda x: robbins([1, 0, 1, 1], covers=x)),
    "betting": (TARGETS, lambda x: betting([1, 0, 0.5, 1], covers=x)),
    "spanning": (TARGETS, lambda x: Estimate(value=0.5, n_tasks=1, n_replicates=1).spanning(0, 1, level=0.9, covers=x)),
    "next_sample": (
        (Step.TASKS, Step.GENERATIONS, Step.GRADES),
        lambda x: next_sample(
            Variances(task=0.1, generation=0.1, grader=0.05),
            Prices(generation=1, grade=1, task=1),
            n_tasks=20, generations=3, grades=2, without=[x],
        ),
    ),
}  # fmt: skip


def shown(found):
    return repr(dataclasses.astuple(found) if dataclasses.is_dataclass(found) else found)


@pytest.mark.parametrize(("options", "of"), CASES.values(), ids=CASES)
def test_text_is_as_good_as_the_enum(options, of):
    by_enum, by_text = ([shown(of(x)) for x in given] for given in (options, [str(x.value) for x in options]))
    assert by_text == by_enum
    assert len(set(by_enum)) == len(by_enum)


@pytest.mark.parametrize(("options", "of"), CASES.values(), ids=CASES)
def test_an_unknown_option_is_refused(options, of):
    with pytest.raises(ValueError, match="unheard-of"):
        of("unheard-of")
