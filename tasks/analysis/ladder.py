"""Rows of `estimates` and `contrasts` from the determinism ladder of each stack."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from evalnoise.providers.oracle import true_rates, true_w
from evalnoise.readers.counts import Counts
from evalnoise.stats import contrasts as between
from evalnoise.stats.estimate import NO_NEW_RUNS, PROVES_NOTHING, Covers, Estimate, Method
from evalnoise.stats.ladder import Ladder, NamedContrast, ladder
from evalnoise.stats.variance import score
from schemas.provider import OracleProvider
from schemas.records import Outcome
from schemas.study import Stack
from tasks.analysis.rows import Row, estimate_row, protocol_fields
from tasks.workshop import Workshop


def ladder_rows(shop: Workshop, counts: Mapping[tuple[str, str], Counts]) -> tuple[list[Row], list[Row]]:
    """Rows of `estimates` and of `contrasts`: for each stack all conditions and all their pairs from one joint bootstrap."""
    analysis = shop.plan.study.analysis
    estimates: list[Row] = []
    contrasts: list[Row] = []
    for stack in shop.plan.study.stacks:
        rungs = [counts[stack.name, condition.name] for condition in shop.plan.study.conditions]
        passes, runs = np.stack([rung.passes for rung in rungs]), np.stack([rung.runs for rung in rungs])
        found = ladder(passes, runs, seed=analysis.seed, resamples=analysis.resamples, level=1 - analysis.alpha)
        estimates += _estimate_rows(shop, stack, found, rungs)
        for rung in rungs:
            estimates += [
                estimate_row(shop, stack.name, rung.condition, name, estimate) for name, estimate in _beside_ladder(shop, rung)
            ]
        contrasts += [_contrast_row(shop, stack.name, named, rungs) for named in found.contrasts]
    return estimates, _with_headlines(contrasts)


def _estimate_rows(shop: Workshop, stack: Stack, found: Ladder, rungs: Sequence[Counts]) -> Iterator[Row]:
    """The ladder's estimates. Where replicates repeat one draw, no interval of the score for new runs is one to quote."""
    study = shop.plan.study
    for named in found.estimates:
        name, result = rungs[named.condition].condition, named.result
        over_runs = named.estimate == "score" and result.covers == Covers.BENCHMARK
        if over_runs and study.repeats_one_draw(stack, study.condition(name)):
            if result.method == Method.EQUAL_P:
                continue
            result = replace(result, note=PROVES_NOTHING + NO_NEW_RUNS)
        yield estimate_row(shop, stack.name, name, named.estimate, result)


def _beside_ladder(shop: Workshop, found: Counts) -> Iterator[tuple[str, Estimate]]:
    scored = score(found.passes, found.runs)
    unmeasured = float(found.unmeasured)
    yield "n_unmeasured", Estimate(value=unmeasured, n_tasks=scored.n_tasks, n_replicates=scored.n_replicates)
    truth = _true_w(shop, found)
    if truth is not None:
        yield "w_true", truth


def _true_w(shop: Workshop, found: Counts) -> Estimate | None:
    """What the oracle's rates imply for the measured tasks; None for stacks that are no oracle."""
    study = shop.plan.study
    condition = study.condition(found.condition)
    spec = study.provider(shop.stack(found.stack), condition)
    if not isinstance(spec, OracleProvider):
        return None
    tasks = [task for task, runs in zip(shop.plan.benchmark.tasks, found.runs, strict=True) if runs >= 2]
    shape: dict[str, Any] = {"method": "oracle", "n_tasks": len(tasks), "n_replicates": study.replicates, "seed": spec.seed}
    if not tasks:
        return Estimate(value=None, undefined="no task was measured twice", **shape)
    if study.repeats_one_draw(shop.stack(found.stack), condition):
        return Estimate(value=0.0, note="its replicates repeat one draw", **shape)
    references = {task.id: shop.reference(found.stack, task) for task in tasks}
    fixed = [name for name, reference in references.items() if reference.outcome is Outcome.PASS and not reference.mutant]
    rates = true_rates(spec, list(references), shop.stack(found.stack).retry, without_mutant=fixed)
    return Estimate(value=true_w(rates), **shape)


def _contrast_row(shop: Workshop, stack: str, named: NamedContrast, rungs: Sequence[Counts]) -> Row:
    study = shop.plan.study
    first, second = rungs[named.a].condition, rungs[named.b].condition
    drawn_once = [study.repeats_one_draw(shop.stack(stack), study.condition(name)) for name in (first, second)]
    unfounded = named.estimate == "score" and named.contrast.result.covers == Covers.BENCHMARK and any(drawn_once)
    contrast = without_new_runs(named.contrast) if unfounded else named.contrast
    said = between.sentence(contrast, of=named.estimate, a=first, b=second)
    return {
        **protocol_fields(shop),
        "stack": stack,
        "condition_a": first,
        "condition_b": second,
        "estimate": named.estimate,
        "se": contrast.se,
        "p_value": contrast.p_value,
        "finding": contrast.finding.value,
        "sentence": said if len(study.stacks) == 1 else f"{stack}: {said}",
        **asdict(contrast.result),
    }


def _with_headlines(rows: list[Row]) -> list[Row]:
    """The rows with `headline` set on one of each contrast.

    Of a score: the interval for new runs of these tasks. Of w: the paper's percentile interval for new tasks, or, where so few
    tasks varied that it covers too seldom, the widest interval for new tasks.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["stack"], row["condition_a"], row["condition_b"], row["estimate"]), []).append(row)
    quoted = [_headline(group) for group in groups.values()]
    return [{**row, "headline": any(row is one for one in quoted)} for row in rows]


def _headline(rows: list[Row]) -> Row:
    by_method = {row["method"]: row for row in rows}
    if rows[0]["estimate"] == "score":
        return by_method[Method.PLUG_IN]
    paper = by_method[Method.PERCENTILE]
    wide = [row for row in rows if row["covers"] == Covers.POPULATION and row["lo"] is not None]
    return max(wide, key=lambda row: float(row["hi"] - row["lo"])) if wide and paper["note"] else paper


def without_new_runs(contrast: between.Contrast) -> between.Contrast:
    """A difference of scores over new runs, without its interval, because one of the conditions has no new runs.

    Its replicates repeat one recorded run, so they vary by the verifier alone, however much a fresh run would differ.
    """
    bare = replace(contrast.result, lo=None, hi=None, level=None, covers=Covers.NOTHING, undefined=NO_NEW_RUNS, note="")
    return replace(contrast, result=bare, finding=between.Finding.PROVES_NOTHING, se=None, p_value=None)
