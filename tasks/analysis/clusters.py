"""Rows about clusters, of a benchmark that names any: cluster-robust and cluster bootstrap intervals beside those over tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import combinations
from typing import Any

import numpy as np

from evalnoise.readers.counts import Counts, Ints
from evalnoise.stats import clusters
from evalnoise.stats import contrasts as between
from evalnoise.stats.contrasts import Contrast
from evalnoise.stats.estimate import Estimate, Method
from evalnoise.stats.variance import score, within_task_variance
from tasks.analysis.rows import Row, estimate_row, protocol_fields
from tasks.workshop import Workshop

_LEAST = {"score": 1, "w": 2}
"""Runs that a task needs."""


def cluster_rows(shop: Workshop, counts: Mapping[tuple[str, str], Counts]) -> tuple[list[Row], list[Row]]:
    """Rows of `estimates` and of `contrasts`: none where the benchmark names no cluster."""
    labels = cluster_labels(shop)
    if labels is None:
        return [], []
    estimates, contrasts = [], []
    for stack in shop.plan.study.stacks:
        rungs = [counts[stack.name, condition.name] for condition in shop.plan.study.conditions]
        for rung in rungs:
            estimates += [estimate_row(shop, rung.stack, rung.condition, of, found) for of, found in _estimates(shop, rung, labels)]
        for a, b in combinations(rungs, 2):
            contrasts += list(_contrasts(shop, a, b, labels))
    return estimates, contrasts


def cluster_labels(shop: Workshop) -> Ints | None:
    """Cluster of each task, (N,), one that names none being a cluster of its own; None where no task names one."""
    return clusters.named_labels([task.cluster for task in shop.plan.benchmark.tasks])


def _options(shop: Workshop) -> tuple[float, dict[str, Any]]:
    """The level, and what a bootstrap needs besides."""
    analysis = shop.plan.study.analysis
    level = 1 - analysis.alpha
    return level, {"seed": analysis.seed, "resamples": analysis.resamples, "level": level}


def _estimates(shop: Workshop, rung: Counts, labels: Ints) -> Iterator[tuple[str, Estimate]]:
    level, drawn = _options(shop)
    for of, least in _LEAST.items():
        if _too_few(labels, rung.runs >= least):
            yield from ((of, estimate) for estimate in _undefined(of, rung))
            continue
        robust = clusters.clustered_score if of == "score" else clusters.clustered_w
        yield of, robust(rung.passes, rung.runs, labels, level=level).result
        yield of, clusters.cluster_bootstrap(rung.passes, rung.runs, labels, of=of, **drawn)


def _too_few(labels: Ints, entered: np.ndarray[Any, np.dtype[np.bool_]]) -> bool:
    return len(np.unique(labels[entered])) < 2


def _undefined(of: str, rung: Counts) -> Iterator[Estimate]:
    """The estimates without an interval, with the reason."""
    scored, varied = score(rung.passes, rung.runs), within_task_variance(rung.passes, rung.runs)
    value, found = (scored.value, scored) if of == "score" else (varied.w, varied)
    for method in (Method.CLUSTER_ROBUST, Method.CLUSTER_BOOTSTRAP):
        reason = found.undefined or clusters.ONE_CLUSTER
        yield Estimate(
            value=value, method=method, n_tasks=found.n_tasks, n_replicates=found.n_replicates, undefined=reason
        )  # fmt: skip


def _contrasts(shop: Workshop, a: Counts, b: Counts, labels: Ints) -> Iterator[Row]:
    level, drawn = _options(shop)
    arrays = (a.passes, a.runs, b.passes, b.runs)
    for of, least in _LEAST.items():
        both = (a.runs >= least) & (b.runs >= least)
        if _too_few(labels, both):
            continue
        robust = clusters.clustered_difference(*arrays, labels, of=of, level=level)
        drawn_again = clusters.cluster_bootstrap_difference(*arrays, labels, of=of, **drawn)
        for se, result in ((robust.se, robust.result), (None, drawn_again)):
            yield _contrast_row(shop, a, b, of, result) | {"se": se}


def _contrast_row(shop: Workshop, a: Counts, b: Counts, of: str, result: Estimate) -> Row:
    tasks = (int(np.sum(a.runs >= _LEAST[of])), int(np.sum(b.runs >= _LEAST[of])))
    contrast = Contrast(result=result, finding=between.classify(result), n_tasks_a=tasks[0], n_tasks_b=tasks[1])
    said = between.sentence(contrast, of=of, a=a.condition, b=b.condition)
    return {
        **protocol_fields(shop), "stack": a.stack, "condition_a": a.condition, "condition_b": b.condition, "estimate": of,
        "finding": contrast.finding.value, "headline": False, **asdict(result),
        "sentence": said if len(shop.plan.study.stacks) == 1 else f"{a.stack}: {said}",
    }  # fmt: skip
