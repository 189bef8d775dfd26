"""The simulations of perf.coverage at a small size: each part runs, and what it counts is what it says."""

from __future__ import annotations

import pytest

from evalnoise.stats.estimate import Estimate
from perf.coverage.__main__ import PARTS, summarise, too_many
from perf.coverage.gates import decisions
from perf.coverage.rates import FAMILIES
from perf.coverage.tally import Place, Tally, merge


def interval(lo, hi, note=""):
    return Estimate(value=0.5, lo=lo, hi=hi, n_tasks=2, n_replicates=2, note=note)


def test_each_side_is_counted_apart_and_warnings_too() -> None:
    tally = Tally()
    for truth, found in (
        (0.1, interval(0.2, 0.3)),
        (0.4, interval(0.2, 0.3, "few")),
        (0.2, interval(0.2, 0.3)),
        (0.2, interval(None, None)),
    ):
        tally.add(truth, found)
    assert (tally.n, tally.below, tally.above, tally.undefined, tally.warned, tally.warned_missed) == (4, 1, 1, 1, 1, 1)
    assert tally.coverage == pytest.approx(1 / 3)
    assert merge([{"p": tally}, {"p": tally}])["p"].below == 2


def test_gaffke_over_the_bar_is_named() -> None:
    place = Place("w", "gaffke", "population", "f", 20, 5)
    assert too_many({place: Tally(n=1000, above=36)}) == []
    assert too_many({place: Tally(n=1000, above=60)}) == ["w, f, N = 20, R = 5: 0.060"]


@pytest.mark.parametrize("part", sorted(PARTS))
def test_every_part_runs_and_mostly_covers(part: str, capsys) -> None:
    made = PARTS[part]
    found = made.simulate(FAMILIES[0], 50, 5, sims=12, resamples=max(200, made.resamples // 5), seed=3)
    assert found
    for place, tally in found.items():
        assert tally.n == 12 or place.part != "w"
        assert tally.below + tally.above + tally.undefined <= tally.n
        if "not valid" not in place.method:
            assert tally.coverage >= 0.5, place
    summarise(found)
    assert "Beta(0.3, 0.2)" in capsys.readouterr().out or all(tally.defined < 50 for tally in found.values())


def test_the_gate_blocks_losses_and_seldom_nothing() -> None:
    by_effect = {row.effect: row.found for row in decisions(0, 50, 5, "benchmark", sims=30, seed=1)}
    assert by_effect["nothing"].block <= 0.2
    assert by_effect["spread"].block >= 0.4
