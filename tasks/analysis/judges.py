"""Rows of `estimates` about judge conditions, and of `contrasts` between two of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import combinations
from typing import Any

from evalnoise.readers.counts import Judged, common_verdicts
from evalnoise.stats.agreement.kappa import TwoGraders
from evalnoise.stats.agreement.panel import judge_numbers, two_judges
from evalnoise.stats.contrasts import classify
from evalnoise.stats.estimate import Estimate, joined
from schemas.provider import OracleJudge
from tasks.analysis.rows import Row, estimate_row, protocol_fields
from tasks.workshop import Workshop


def judge_rows(shop: Workshop, judged: Sequence[Judged]) -> list[Row]:
    """Rows of `estimates` about judge conditions."""
    return [
        estimate_row(shop, verdicts.stack, verdicts.condition, f"verdict_{name}", estimate)
        for verdicts in judged
        for name, estimate in _judge_estimates(shop, verdicts)
    ]


def judge_pair_rows(shop: Workshop, judged: Sequence[Judged]) -> list[Row]:
    """Rows of `contrasts` between the judge conditions of a stack, majority against majority on the same frozen candidates.

    `judges_bias` is a difference, share passed by a less share passed by b. `judges_kappa` and `judges_pabak` are coefficients of
    the two together, whose finding says whether they agree beyond chance, or on more than half of the candidates.
    """
    rows: list[Row] = []
    for first, second in combinations(judged, 2):
        if first.stack == second.stack:
            rows += _pair(shop, first, second)
    return rows


def drawn(shop: Workshop) -> dict[str, Any]:
    """How the study asks for intervals: seed, resamples and level."""
    analysis = shop.plan.study.analysis
    return {"seed": analysis.seed, "resamples": analysis.resamples, "level": 1 - analysis.alpha}


def _judge_estimates(shop: Workshop, judged: Judged) -> Iterator[tuple[str, Estimate]]:
    yield from judge_numbers(judged.verdicts, judged.reference, confidence=judged.confidence, stated=judged.stated, **drawn(shop))
    judge = shop.plan.study.judge
    specs = {condition.name: condition.provider for condition in judge.conditions} if judge else {}
    spec = specs.get(judged.condition)
    if isinstance(spec, OracleJudge):
        shape: dict[str, Any] = {"n_tasks": len(judged.verdicts), "n_replicates": judged.verdicts.shape[1]}
        yield "w_true", Estimate(value=spec.flip * (1 - spec.flip), method="oracle", seed=spec.seed, **shape)


def _pair(shop: Workshop, first: Judged, second: Judged) -> Iterator[Row]:
    found: TwoGraders = two_judges(*common_verdicts(first, second), **drawn(shop))
    prevalence, bias = found.prevalence.value, found.bias.value
    beside = "" if prevalence is None or bias is None else f"prevalence index {prevalence:+.3f}, bias index {bias:+.3f}"
    named = (
        ("judges_bias", found.bias),
        ("judges_kappa", replace(found.kappa, note=joined(found.kappa.note, beside))),
        ("judges_kappa", found.kappa_percentile),
        ("judges_pabak", found.pabak),
    )
    for name, estimate in named:
        yield {
            **protocol_fields(shop),
            "stack": first.stack,
            "condition_a": first.condition,
            "condition_b": second.condition,
            "estimate": name,
            "finding": classify(estimate).value,
            "headline": False,
            "sentence": pair_sentence(name, estimate, first, second),
            **asdict(estimate),
        }


def pair_sentence(name: str, estimate: Estimate, first: Judged, second: Judged) -> str:
    """What a row says, for instance ``judges_kappa, a and b: real, +0.8113 [+0.4681, +1.0000], 95 % over new tasks``."""
    head = f"{name}, {first.condition} {'-' if name == 'judges_bias' else 'and'} {second.condition}: {classify(estimate)}"
    if estimate.value is None:
        return f"{head}: {estimate.undefined}"
    if estimate.lo is None or estimate.hi is None or estimate.level is None:
        return f"{head}, {estimate.value:+.4f}: {estimate.undefined}"
    ends = f"[{estimate.lo:+.4f}, {estimate.hi:+.4f}], {estimate.level * 100:.4g} %"
    return f"{head}, {estimate.value:+.4f} {ends} over new tasks ({estimate.method})"
