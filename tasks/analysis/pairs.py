"""Rows of `contrasts` between stacks: every pair under the same condition, with its noise in parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations

import numpy as np

from evalnoise.readers.counts import Counts
from evalnoise.stats import contrasts as between
from evalnoise.stats.contrasts import Contrast, Finding
from evalnoise.stats.estimate import NO_NEW_RUNS, Covers, Estimate, Method, joined
from evalnoise.stats.gates.cmh import Cmh, cmh_test
from evalnoise.stats.models.noise import PairNoise
from evalnoise.stats.models.pairs import all_pairs
from evalnoise.stats.models.samples import Ints, Samples
from evalnoise.stats.multiplicity import adjusted
from tasks.analysis.ladder import without_new_runs
from tasks.analysis.rows import Row, protocol_fields
from tasks.workshop import Workshop

MOST_PAIRS = 300
"""Pairs of stacks of which every one has rows; of more stacks, each is compared with the first alone."""
BOUNDED = "each stack is compared with the first one only, because there are many; `evalnoise compare` has every pair"
OPPOSITE = (
    "the test of counts points against this difference, because runs differ between tasks: it weighs each task by its runs, the"
    " difference weighs all alike, so neither is told as real"
)
_PARTS = (
    ("se_total", "total noise of one sample per task", Covers.POPULATION),
    ("se_data", "data noise, the floor that no number of samples takes away", Covers.POPULATION),
    ("se_prediction", "prediction noise of one sample per task", Covers.BENCHMARK),
)


def pair_rows(shop: Workshop, counts: Mapping[tuple[str, str], Counts]) -> Iterator[Row]:
    """Rows between stacks, of a study that has several: by condition and pair, score and standard errors.

    The headline is the paired t over tasks: which of two stacks is better is a question about tasks like these.
    """
    study = shop.plan.study
    stacks = [stack.name for stack in study.stacks]
    for condition in (condition.name for condition in study.conditions):
        rungs = [counts[stack, condition] for stack in stacks]
        chosen = list(combinations(range(len(stacks)), 2))
        bounded = len(chosen) > MOST_PAIRS
        pairs = [_pair(shop, rungs, a, b) for a, b in chosen if not bounded or a == 0]
        yield from (row for named in _with_family(pairs) for row in named.rows(shop, BOUNDED if bounded else ""))


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two stacks under a condition."""

    a: Counts
    b: Counts
    tests: tuple[Contrast, ...]
    """Of the score; the first is the one to quote."""
    noise: PairNoise
    new_runs: bool
    """Whether replicates of both are fresh runs."""
    p_adjusted: tuple[float | None, ...] = ()
    """Of each test, its own p by Holm."""

    def rows(self, shop: Workshop, note: str) -> Iterator[Row]:
        place = f"{self.a.condition}, {self.a.stack} - {self.b.stack}"
        for number, (test, p_adjusted) in enumerate(zip(self.tests, self.p_adjusted, strict=True)):
            told = replace(test, result=replace(test.result, note=joined(test.result.note, note)))
            yield self._row(shop, "score", told.result) | {
                "se": test.se,
                "p_value": test.p_value,
                "p_adjusted": p_adjusted,
                "finding": test.finding.value,
                "headline": number == 0,
                "sentence": _sentence(told, self.a, self.b, p_adjusted),
            }
        for name, words, covers in _PARTS:
            part = self._part(name, covers)
            value = part.undefined if part.value is None else f"{part.value:.4f}"
            yield self._row(shop, name, part) | {"sentence": f"SE of the score, {place}: {words}: {value}"}

    def _part(self, name: str, covers: Covers) -> Estimate:
        noise = self.noise
        value: float | None = getattr(noise, name)
        told = noise.undefined if name == "se_total" else noise.parts_undefined
        if not self.new_runs and name != "se_total":
            value, told = None, NO_NEW_RUNS
        if value is None and not told:
            told = noise.note
        return Estimate(
            value=value,
            method=Method.PAIRED_NOISE,
            covers=covers,
            n_tasks=noise.n_tasks if name == "se_total" else noise.n_twice,
            n_replicates=self.tests[0].result.n_replicates,
            undefined=told if value is None else "",
        )

    def _row(self, shop: Workshop, name: str, result: Estimate) -> Row:
        return {
            **protocol_fields(shop), "stack": self.a.stack, "stack_b": self.b.stack, "condition_a": self.a.condition,
            "condition_b": self.b.condition, "estimate": name, "finding": "",
            "headline": False, **asdict(result),
        }  # fmt: skip


def _pair(shop: Workshop, rungs: Sequence[Counts], a: int, b: int) -> _Pair:
    study = shop.plan.study
    level = 1 - study.analysis.alpha
    one, other = rungs[a], rungs[b]
    arrays = (one.passes, one.runs, other.passes, other.runs)
    condition = study.condition(one.condition)
    new_runs = not any(study.repeats_one_draw(shop.stack(rung.stack), condition) for rung in (one, other))
    passes, runs = np.stack([one.passes, other.passes]), np.stack([one.runs, other.runs])
    noise = all_pairs(Samples(runs=runs, sums=passes, squares=passes, unit=1)).pair(0)
    by_runs = (between.score_contrast_benchmark(*arrays, level=level), _counted(arrays, noise, study.analysis.alpha))
    fresh = tuple(test if new_runs or test.result.covers == Covers.POPULATION else without_new_runs(test) for test in by_runs)
    return _Pair(one, other, (between.paired_t(*arrays, of="score", level=level), *fresh), noise, new_runs)


def _counted(arrays: tuple[Ints, ...], noise: PairNoise, alpha: float) -> Contrast:
    """The exact test of counts: of one run per task the sign test, of more the CMH test; it has no interval.

    A finding is real only where the test points the way of the difference, which weighs all tasks alike.
    """
    one_each, agree = noise.wins is not None, True
    if one_each:
        p, undefined = noise.p_sign, noise.sign_undefined
    else:
        found = cmh_test(*arrays)
        p, undefined = found.p_two_sided, found.undefined
        agree = p is None or p >= alpha or _points_alike(noise.mean, found)
    n_a, n_b = (int(np.sum(runs >= 1)) for runs in (arrays[1], arrays[3]))
    both = (arrays[1] >= 1) & (arrays[3] >= 1)
    result = Estimate(
        value=noise.mean,
        method=Method.SIGN_TEST if one_each else Method.CMH,
        covers=Covers.POPULATION if one_each else Covers.BENCHMARK,
        n_tasks=noise.n_tasks,
        n_replicates=int(min(arrays[1][both].min(), arrays[3][both].min())) if both.any() else 0,
        undefined=undefined if p is None else "",
        note=joined("a test: it has no interval", "" if agree else OPPOSITE),
    )
    finding = Finding.PROVES_NOTHING if p is None else Finding.REAL if p < alpha and agree else Finding.NOT_RESOLVED
    return Contrast(result=result, finding=finding, n_tasks_a=n_a, n_tasks_b=n_b, p_value=p)


def _points_alike(difference: float | None, found: Cmh) -> bool:
    """Whether the test leans to the side of the difference."""
    if difference is None or found.p_less is None or found.p_greater is None:
        return True
    return difference > 0 if found.p_greater < found.p_less else difference < 0


def _with_family(pairs: Sequence[_Pair]) -> list[_Pair]:
    """The pairs with Holm's p-values: a family is one test of all pairs of a condition."""
    if not pairs:
        return []
    families = [adjusted([pair.tests[test].p_value for pair in pairs]).p_adjusted for test in range(len(pairs[0].tests))]
    return [replace(pair, p_adjusted=tuple(family[number] for family in families)) for number, pair in enumerate(pairs)]


def _sentence(test: Contrast, a: Counts, b: Counts, p_adjusted: float | None) -> str:
    of = f"score, {a.condition}"
    said = between.sentence(test, of=of, a=a.stack, b=b.stack)
    if test.p_value is None or p_adjusted is None or test.result.value is None:
        return said
    if test.result.lo is None:
        said = f"{of}, {a.stack} - {b.stack}: {test.finding}, {test.result.value:+.4f}, {test.result.method}"
    opposite = f"; {OPPOSITE}" if OPPOSITE in test.result.note else ""
    return f"{said}; p {test.p_value:.3g}, this p over all pairs {p_adjusted:.3g} (Holm){opposite}"
