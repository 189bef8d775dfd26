"""Rows of `estimates` about judge conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalnoise.readers.counts import Judged
from evalnoise.stats import intervals
from evalnoise.stats.agreement.judge import judge_agreement
from evalnoise.stats.estimate import Estimate
from schemas.provider import OracleJudge
from tasks.analysis.rows import Row, estimate_row
from tasks.workshop import Workshop


def judge_rows(shop: Workshop, judged: Sequence[Judged]) -> list[Row]:
    """Rows of `estimates` about judge conditions."""
    return [
        estimate_row(shop, verdicts.stack, verdicts.condition, f"verdict_{name}", estimate)
        for verdicts in judged
        for name, estimate in _judge_estimates(shop, verdicts)
    ]


def _judge_estimates(shop: Workshop, judged: Judged) -> Iterator[tuple[str, Estimate]]:
    analysis = shop.plan.study.analysis
    level = 1 - analysis.alpha
    drawn: dict[str, Any] = {"seed": analysis.seed, "resamples": analysis.resamples, "level": level}
    found = judge_agreement(judged.verdicts, judged.reference, confidence=judged.confidence, stated=judged.stated, **drawn)
    yield "w", intervals.w_population(found.passes, found.runs, **drawn)
    yield "w", intervals.w_benchmark(found.passes, found.runs, level=level)
    yield "disagreement", found.disagreement
    varied = None if found.variance.undefined else found.variance.variable_tasks
    numbers: dict[str, tuple[float | None, str]] = {
        "variable_tasks": (varied, found.variance.undefined),
        "false_accepts": (found.false_accepts, ""),
        "false_rejects": (found.false_rejects, ""),
        "ties": (found.ties, ""),
        "unparsed_share": (found.unparsed_share, "no verdict was asked for"),
        "mean_confidence": (found.mean_confidence, "no confidence was stated"),
    }
    shape: dict[str, Any] = {"n_tasks": len(judged.verdicts), "n_replicates": judged.verdicts.shape[1]}
    compared = {"n_tasks": found.compared}
    for name, (value, missing) in numbers.items():
        number = None if value is None else float(value)
        tasks = compared if name in {"false_accepts", "false_rejects"} else {}
        yield name, Estimate(value=number, undefined=missing if value is None else "", **(shape | tasks))
    judge = shop.plan.study.judge
    specs = {condition.name: condition.provider for condition in judge.conditions} if judge else {}
    spec = specs.get(judged.condition)
    if isinstance(spec, OracleJudge):
        yield "w_true", Estimate(value=spec.flip * (1 - spec.flip), method="oracle", seed=spec.seed, **shape)
