"""How often the gate blocks and passes, by simulation: its type I error and its power for effects of several shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evalnoise.stats.gates.aa import article_rule
from evalnoise.stats.gates.gate import Decision, GateRule, gate
from evalnoise.stats.gates.side import Side, counted_side
from evalnoise.stats.resampling import stream

_ARMS, _AGAIN = 72, 73


@dataclass(frozen=True, slots=True, kw_only=True)
class GatePower:
    """Shares of simulated comparisons by their decision."""

    block: float
    """Share that was blocked: the power where something was lost, half the type I error of the two-sided test where not."""
    passed: float
    """Share that passed."""
    inconclusive: float
    """Share of the rest."""
    loss: float
    """The true loss of score on these tasks, base minus new."""
    trials: int
    """Simulated comparisons."""
    seed: int
    """Seed."""


def simulate_gate_power(
    rates_base: ArrayLike,
    rates_new: ArrayLike,
    *,
    runs_base: int,
    runs_new: int,
    rule: GateRule,
    trials: int = 1_000,
    seed: int = 0,
) -> GatePower:
    """Decisions over new runs of tasks with these pass rates, each of shape (N,).

    Rates of a pilot must have the mean p (1-p) that the arms have: raw k/R has too little. Trial t has its own stream.
    """

    def decide(new: Side, base: Side) -> Decision:
        return gate(new, base, rule).decision

    return simulate(rates_base, rates_new, decide, runs_base=runs_base, runs_new=runs_new, trials=trials, seed=seed)


def simulate_article_power(
    rates_base: ArrayLike, rates_new: ArrayLike, *, runs: int, trials: int = 1_000, seed: int = 0, resamples: int = 2_000
) -> GatePower:
    """The same for the published rule, with a second arm of base for its A/A half, as published."""
    p = np.asarray(rates_base, dtype=np.float64)
    streams = _streams(trials, seed, _AGAIN)

    def decide(new: Side, base: Side) -> Decision:
        again = counted_side(next(streams).binomial(runs, p), np.full(len(p), runs))
        return article_rule(new, base, again, resamples=resamples).decision

    return simulate(rates_base, rates_new, decide, runs_base=runs, runs_new=runs, trials=trials, seed=seed)


def simulate(
    rates_base: ArrayLike,
    rates_new: ArrayLike,
    decide: Callable[[Side, Side], Decision],
    *,
    runs_base: int,
    runs_new: int,
    trials: int,
    seed: int,
) -> GatePower:
    """Decisions of any rule, called with new and base."""
    p, q = np.asarray(rates_base, dtype=np.float64), np.asarray(rates_new, dtype=np.float64)
    if p.shape != q.shape or p.ndim != 1:
        raise ValueError(f"both arms need one rate per task, shape (N,), not {p.shape} and {q.shape}")
    counted = dict.fromkeys(Decision, 0)
    for generator in _streams(trials, seed):
        base = counted_side(generator.binomial(runs_base, p), np.full(len(p), runs_base))
        new = counted_side(generator.binomial(runs_new, q), np.full(len(p), runs_new))
        counted[decide(new, base)] += 1
    return GatePower(
        block=counted[Decision.BLOCK] / trials,
        passed=counted[Decision.PASS] / trials,
        inconclusive=counted[Decision.INCONCLUSIVE] / trials,
        loss=float(np.mean(p - q)),
        trials=trials,
        seed=seed,
    )


def _streams(trials: int, seed: int, purpose: int = _ARMS) -> Iterator[np.random.Generator]:
    for trial in range(trials):
        yield stream(seed, (purpose,), trial)
