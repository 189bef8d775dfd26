"""Rows of `estimates` and `checks` about the order of replicates, and rows of `estimates` about the tasks that carry the noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from evalnoise.readers.counts import Counts
from evalnoise.stats.drift import Drift, DriftTest, RunSums, drift
from evalnoise.stats.estimate import Covers, Estimate, Method, joined
from evalnoise.stats.influence import Concentration, concentration, influence
from tasks.analysis.rows import Row, estimate_row, protocol_fields
from tasks.checks import order_unknown
from tasks.workshop import Workshop

Found = Mapping[tuple[str, str], Drift]
_POWER_SHOWN = 0.03
_NAMED = 5
_NOISE = ("noise_concentration", "noise_carriers_half", "noise_carriers_80", "w_without_most")


def find_drift(shop: Workshop, sums: Mapping[tuple[str, str], RunSums]) -> dict[tuple[str, str], Drift]:
    """Tests for drift of every stack under every condition."""
    study = shop.plan.study
    return {
        (stack, condition): drift(
            runs,
            order_known=not order_unknown(study, shop.stack(stack), study.condition(condition)),
            seed=study.analysis.seed,
            alpha=study.analysis.alpha,
        )
        for (stack, condition), runs in sums.items()
    }


def order_rows(shop: Workshop, found: Found) -> Iterator[Row]:
    """Rows of `estimates`: drift_q, drift_trend, drift_scan, the p and the power of each, and drift_split_ratio."""
    for (stack, condition), result in found.items():
        for name, estimate in _drift_estimates(result):
            yield estimate_row(shop, stack, condition, name, estimate)


def drift_checks(shop: Workshop, found: Found) -> Iterator[Row]:
    """Rows of `checks`: conditions whose replicates differ by more than chance, at the study's alpha over all of its tests."""
    alpha = shop.plan.study.analysis.alpha
    tested = {key: result for key, result in found.items() if result.smallest_p is not None}
    for (stack, condition), result in tested.items():
        if result.smallest_p is None or result.smallest_p * len(tested) > alpha:
            continue
        yield {
            **protocol_fields(shop), "check": "drift", "stack": stack, "condition": condition, "severity": "warning",
            "blocks": False, "sentence": _drift_sentence(stack, condition, result, len(tested), alpha), "value": result.change,
        }  # fmt: skip


def noise_rows(shop: Workshop, counts: Mapping[tuple[str, str], Counts]) -> Iterator[Row]:
    """Rows of `estimates`: noise_concentration, noise_carriers_half, noise_carriers_80 and w_without_most."""
    names = [task.id for task in shop.plan.benchmark.tasks]
    for (stack, condition), found in counts.items():
        for name, estimate in _noise_estimates(found, names):
            yield estimate_row(shop, stack, condition, name, estimate)


def _drift_estimates(found: Drift) -> Iterator[tuple[str, Estimate]]:
    base = Estimate(value=None, n_tasks=found.n_tasks, n_replicates=found.n_replicates, undefined=found.undefined)
    limiting = {"q": Method.CHI_SQUARE, "trend": Method.NORMAL, "scan": Method.PERMUTATION}
    for name, test in (("q", found.q), ("trend", found.trend), ("scan", found.scan)):
        method = limiting[name]
        if test is None:
            yield f"drift_{name}", _with(base, method=method)
            continue
        permuted = _with(base, value=test.p_permuted, method=Method.PERMUTATION, note=test.note, found=found)
        # The statistic has no interval, but it speaks of these tasks.
        yield f"drift_{name}", _with(base, value=test.statistic, method=method, note=joined(_power_note(found, test), test.note))
        yield f"drift_{name}_p", permuted
        if test.p is not None:
            yield f"drift_{name}_p", _with(base, value=test.p, method=method, note=test.note)
        yield f"drift_{name}_power", _with(base, value=_power(found, test), method=Method.NORMAL, note=_power_note(found, test))
    yield "drift_split_ratio", _with(base, value=found.split_ratio, method=Method.EXACT, note="")
    change = "" if found.change_point is None else f"between replicates {found.change_point - 1} and {found.change_point}"
    yield "drift_change", _with(base, value=found.change, method=Method.EXACT, note=change)


def _with(base: Estimate, *, method: Method, value: float | None = None, note: str = "", found: Drift | None = None) -> Estimate:
    return Estimate(
        value=value,
        method=method,
        covers=Covers.BENCHMARK if value is not None else Covers.NOTHING,
        n_tasks=base.n_tasks,
        n_replicates=base.n_replicates,
        seed=found.seed if found else None,
        resamples=found.resamples if found else None,
        undefined=base.undefined if value is None else "",
        note=note,
    )


def _power(found: Drift, test: DriftTest) -> float:
    """The power for a difference of three points."""
    return test.power[found.effects.index(_POWER_SHOWN)]


def _power_note(found: Drift, test: DriftTest) -> str:
    effects = ", ".join(f"{effect * 100:g}" for effect in found.effects)
    chances = ", ".join(f"{chance:.2f}" for chance in test.power)
    return f"a drift of {effects} points would be seen at {found.alpha:g} with probability {chances}"


def _drift_sentence(stack: str, condition: str, found: Drift, tested: int, alpha: float) -> str:
    tests = {"differ (Cochran's Q)": found.q, "rise or fall steadily": found.trend, "change at one point": found.scan}
    p = {said: test.p_permuted for said, test in tests.items() if test is not None}
    said = min(p, key=lambda name: p[name])
    step = 0.0 if found.change is None else 100 * found.change
    return (
        f"{stack}, {condition}: scores {said} over the replicates by more than chance (permutation p {p[said]:.4f}, which counts "
        f"at {alpha:g} over 3 tests of {tested} conditions); from replicate {found.change_point} on they are {step:+.2f} points "
        "away. Replicates then are no repeats of one thing, and w, intervals and budgets leave that variation out."
    )


def _noise_estimates(found: Counts, names: list[str]) -> Iterator[tuple[str, Estimate]]:
    spread = concentration(found.passes, found.runs)
    shape = Estimate(value=None, n_tasks=spread.n_tasks, n_replicates=spread.n_replicates, undefined=spread.undefined)
    if spread.effective is None:
        yield from ((name, shape) for name in _NOISE)
        return
    concentrated, half, most, without = _NOISE
    yield concentrated, _exact(spread, spread.effective, f"of {spread.variable_tasks} variable tasks")
    for name, share, carriers in ((half, "half", spread.half), (most, "80 %", spread.most)):
        listed = ", ".join(names[task] for task in carriers[:_NAMED])
        more = f" and {len(carriers) - _NAMED} more" if len(carriers) > _NAMED else ""
        yield name, _exact(spread, float(len(carriers)), f"{share} of the sum of s2: {listed}{more}")
    others = influence(found.passes, found.runs)
    if others.without is None:
        yield without, shape.lacking(others.undefined)
        return
    place = int((others.tasks == spread.half[0]).argmax())
    yield without, _exact(spread, float(others.without[place]), f"w without {names[spread.half[0]]}")


def _exact(spread: Concentration, value: float, note: str) -> Estimate:
    return Estimate(value=value, n_tasks=spread.n_tasks, n_replicates=spread.n_replicates, note=note)
