"""Analysis: sealed outcomes in, estimates, contrasts, budgets and checks out, then the catalog."""

from __future__ import annotations

import hashlib
from contextlib import closing

from evalnoise.readers.counts import counted_once, read_counts, read_judged
from evalnoise.readers.order import read_run_sums
from evalnoise.store.catalog import build_catalog, connect
from evalnoise.store.partition import PartitionWrite
from schemas.tables import BUDGETS, CHECKS, CONTRASTS, ESTIMATES
from tasks.analysis.budgets import budget_rows
from tasks.analysis.clusters import cluster_rows
from tasks.analysis.components import component_rows, graded
from tasks.analysis.judges import judge_pair_rows, judge_rows
from tasks.analysis.ladder import ladder_rows
from tasks.analysis.order import drift_checks, find_drift, noise_rows, order_rows
from tasks.analysis.pairs import pair_rows
from tasks.analysis.reliability import reliability_rows
from tasks.analysis.rows import contrast_row
from tasks.checks import check_rows
from tasks.workshop import Workshop

SHARD = "analyse"


def analyse(shop: Workshop) -> None:
    """Seal the protocol's estimates, contrasts, budgets and checks, and rebuild the catalog over them."""
    shop.progress.stage(SHARD)
    plan = shop.plan
    build_catalog(shop.store.root)
    with closing(connect(shop.store.root)) as connection, counted_once(connection, plan.study.study, plan.digest):
        counts = read_counts(connection, plan.study.study, plan.digest, plan.protocol.n_tasks)
        judged = read_judged(connection, plan.study.study, plan.digest)
        sums = read_run_sums(connection, plan.study.study, plan.digest, plan.protocol.replicates, counts)
        grades = graded(shop, counts, judged)
        checks = list(check_rows(shop, connection, grades))
    rungs, contrasts = ladder_rows(shop, counts)
    in_clusters, cluster_contrasts = cluster_rows(shop, counts)
    contrasts += judge_pair_rows(shop, judged) + list(pair_rows(shop, counts))
    estimates = rungs + judge_rows(shop, judged) + list(component_rows(shop, grades))
    estimates += in_clusters
    contrasts += cluster_contrasts
    drifts = find_drift(shop, sums)
    estimates += [*order_rows(shop, drifts), *noise_rows(shop, counts), *reliability_rows(shop, counts)]
    checks += drift_checks(shop, drifts)
    writes = [
        PartitionWrite(ESTIMATES, {}, estimates, "all"),
        PartitionWrite(CONTRASTS, {}, [contrast_row(row) for row in contrasts], "all"),
        PartitionWrite(BUDGETS, {}, list(budget_rows(shop, estimates, counts, judged)), "all"),
        PartitionWrite(CHECKS, {}, checks, "all"),
    ]
    shop.study_store.commit(SHARD, writes, inputs=[_sealed_digest(shop)])
    build_catalog(shop.store.root)


def _sealed_digest(shop: Workshop) -> str:
    """One digest over all sealed files that the analysis stands on: their own digests are in the manifest, a line each."""
    live = shop.study_store.manifest.live
    digests = sorted(file.sha256 for name, files in live.items() if name != SHARD for file in files)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()
