"""Rows about clusters: only where a benchmark names any, beside the rows over tasks, and undefined where there is one cluster."""

import json

from schemas.study import Study
from tests.support import stages

CODE = "def f(x):\n    return x + {}\n"


def benchmark(folder, clusters):
    rows = [
        {"id": f"own/{n}", "prompt": f"Add {n}.", "entry_point": "f", "reference": CODE.format(n), "inputs": [[1], [2]]}
        | ({"cluster": cluster} if cluster else {})
        for n, cluster in enumerate(clusters)
    ]
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {"name": "jsonl", "path": str(path)}


def run(folder, clusters):
    root = folder / "store"
    stages.run(Study.model_validate(stages.body(benchmark=benchmark(folder, clusters))), root, limit=None)
    return root


METHODS = ("cluster-robust", "cluster bootstrap")


def test_clusters_have_rows_of_their_own(tmp_path):
    root = run(tmp_path, ["a", "a", "b", "b", "", "c"])
    found = stages.rows(
        root,
        f"select condition, estimate, method, covers, value, lo, hi, note from estimates where method in {METHODS} "
        "and estimate not like 'component%'",
    )
    assert {row[:3] for row in found} == {(c, e, m) for c in ("live", "cold", "replay") for e in ("score", "w") for m in METHODS}
    for condition, estimate, _, covers, value, lo, hi, note in found:
        assert (covers, lo <= value <= hi) == ("population", True)
        assert "only 4 clusters, the largest of 2 tasks" in note, "a task without a cluster is one of its own"
        same = f"select distinct value from estimates where condition = '{condition}' and estimate = '{estimate}'"
        assert stages.rows(root, same) == [(value,)]
    contrasts = stages.rows(root, f"select estimate, finding, sentence, headline from contrasts where method in {METHODS}")
    assert len(contrasts) == 3 * 2 * 2
    assert all(finding and finding in sentence and not headline for _, finding, sentence, headline in contrasts)
    assert stages.rows(root, "select count(*) from noise_floor") == [(3,)]
    drawn = f"select distinct method, seed is null, resamples from estimates where method in {METHODS} order by 1 desc"
    assert stages.rows(root, drawn) == [("cluster-robust", True, None), ("cluster bootstrap", False, 500)]

    parts = stages.rows(
        root,
        "select condition, estimate, method, note from estimates where estimate like 'component%' and note like '%cluster%' "
        "order by all",
    )
    of = {"live": ("task", "generation_grader"), "replay": ("task_generation", "grader")}
    expected = {(c, f"component_{name}") for c in ("live", "cold", "replay") for name in of.get(c, of["live"])}
    assert {row[:2] for row in parts if row[2] == "cluster bootstrap"} == expected
    for _, _, method, note in parts:
        assert ("only 4 clusters" if method == "cluster bootstrap" else "quote the cluster bootstrap's interval") in note


def test_no_cluster_no_row(tmp_path):
    root = run(tmp_path, [""] * 4)
    assert stages.rows(root, f"select count(*) from estimates where method in {METHODS}") == [(0,)]
    assert stages.rows(root, f"select count(*) from contrasts where method in {METHODS}") == [(0,)]


def test_one_cluster_is_undefined_with_that_reason(tmp_path):
    root = run(tmp_path, ["a"] * 4)
    found = stages.rows(root, f"select value is not null, lo, undefined from estimates where method in {METHODS}")
    assert found == [(True, None, "an interval over clusters needs 2 of them")] * (12 + 6)
