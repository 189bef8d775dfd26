"""The SQL views: headers that match, pivots that double no row, the newest complete protocol, and w recomputed from outcomes."""

from __future__ import annotations

import itertools
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalnoise.store.catalog import connect
from evalnoise.store.partition import PartitionWrite
from evalnoise.store.store import Store, StudyStore
from schemas.macros import load_macros
from schemas.protocol import Protocol
from schemas.tables import BUDGETS, CHECKS, CONTRASTS, ESTIMATES, OUTCOMES, TABLES
from schemas.views import load_views, parse_view, reader_columns, reference_markdown

ROOT = Path(__file__).parents[2]
SPEC = [
    "study", "protocol", "benchmark", "stack", "condition", "n_tasks", "n_replicates", "n_unmeasured", "score", "score_run_sd", "w",
    "w_lo", "w_hi", "w_bench_lo", "w_bench_hi", "variable_tasks", "variable_lo", "variable_hi", "runs", "runs_lo", "runs_hi",
]  # fmt: skip
CLASSES = (
    "n_answers", "n_truncated", "n_refused", "n_filtered", "n_empty", "n_malformed", "n_infrastructure",
)  # fmt: skip
PERCENTILE = "percentile task bootstrap"
W_FROM_OUTCOMES = """
select stack, condition, case when min(n) >= 2 then avg(k * (n - k) / (n * (n - 1))) end as w
from (
  select stack, condition, task_id, count(score) as n, sum(score) as k
  from outcomes where protocol = $protocol group by all
)
group by all
"""


def make_protocol(study: str, replicates: int, seed: int = 0) -> Protocol:
    facts: dict[str, Any] = {"limit": None, "benchmark": "b", "benchmark_sha256": "0" * 64, "benchmark_files": (), "n_tasks": 30}
    facts |= {"recordings": {}, "prompts": {}, "executors": {}, "checkers": {}, "measurement": {}}
    return Protocol(study={"study": study, "seed": seed}, replicates=replicates, **facts)


class Study:
    """One protocol with seeded outcomes and the estimates that belong to them."""

    def __init__(self, store: Store, name: str = "demo", replicates: int = 5, seed: int = 0) -> None:
        protocol = make_protocol(name, replicates, seed)
        store.freeze(protocol)
        self.at: StudyStore = store.study(name, protocol.digest())
        self.replicates = replicates
        self.known_w: dict[tuple[str, str], float] = {}
        self.lineage = {"study": name, "protocol": protocol.digest(), "benchmark": "b"}
        rng = np.random.default_rng(seed)
        self.passes = {(s, c): rng.random((30, replicates)) < rng.random((30, 1)) for s in ("s1", "s2") for c in ("live", "temp0")}

    def outcomes(self, unmeasured: set[tuple[int, int]] = frozenset()) -> None:
        for (stack, condition), table in self.passes.items():
            for replicate in range(self.replicates):
                rows = []
                for position in range(30):
                    missing = (position, replicate) in unmeasured
                    passed = bool(table[position, replicate])
                    rows.append(
                        self.lineage
                        | {"task_id": f"t/{position}", "position": position, "reason": "", "attempts": 1, "candidate_sha256": None}
                        | {"response_class": "complete"}
                        | {"outcome": "unmeasured" if missing else "pass" if passed else "fail"}
                        | {"score": None if missing else float(passed)}
                    )
                keys = {"stack": stack, "condition": condition, "replicate": replicate}
                self.at.commit(f"{stack}-{condition}-{replicate}", [PartitionWrite(OUTCOMES, keys, rows, "0")])

    def plan(self) -> None:
        shards = [f"{stack}-{condition}-{r}" for stack, condition in self.passes for r in range(self.replicates)]
        self.at.plan([*shards, "analyse"])

    def w(self, stack: str, condition: str) -> float | None:
        if self.known_w:
            return self.known_w[stack, condition]
        if self.replicates < 2:
            return None
        return float(self.passes[stack, condition].var(axis=1, ddof=1).mean())

    def estimate(self, stack: str, condition: str, name: str, value: float | None, **facts: Any) -> dict[str, Any]:
        row = self.lineage | {"stack": stack, "condition": condition, "estimate": name, "value": value, "lo": None, "hi": None}
        row |= {"method": "exact", "covers": "", "level": None, "n_tasks": 30, "n_replicates": self.replicates, "seed": None}
        return row | {"resamples": None, "undefined": "", "note": ""} | facts

    def _add(self, rows: list[dict[str, Any]], stack: str, condition: str, name: str, value: float | None, **facts: Any) -> None:
        rows.append(self.estimate(stack, condition, name, value, **facts))

    def analyse(self, *, gaffke: bool = True, extra: int = 0) -> None:
        estimates, budgets = [], []
        for (stack, condition), table in self.passes.items():
            w = self.w(stack, condition)
            score = float(table.mean())
            undefined = "" if w is not None else "one run has no variance"
            add = partial(self._add, estimates, stack, condition)
            interval = {"level": 0.95, "undefined": undefined}
            add("score", score, method=PERCENTILE, covers="population", lo=score - 0.1, hi=score + 0.1, level=0.95)
            add("score", score, method="equal-p variance bound", covers="benchmark", lo=score - 0.01, hi=score + 0.01, level=0.95)
            add("score_run_sd", None if w is None else (w / 30) ** 0.5, undefined=undefined)
            if w is None:
                add("w", None, method=PERCENTILE, undefined=undefined)
                add("w", None, method="equal-p variance bound", undefined=undefined)
            else:
                add("w", w, method=PERCENTILE, covers="population", lo=w - 0.02, hi=w + 0.03, note="few", **interval)
                add("w", w, method="equal-p variance bound", covers="benchmark", lo=w - 0.002, hi=w + 0.003, **interval)
                if gaffke:
                    add("w", w, method="gaffke", covers="population", lo=w - 0.5, hi=w + 0.5, note="conjecture", **interval)
                    add("w", w, method="one-sided limit, nothing varied", covers="population", lo=0.0, hi=0.9, **interval)
            varied = int((table.any(axis=1) & ~table.all(axis=1)).sum())
            add("variable_tasks", float(varied))
            add("variable_share", varied / 30, method="clopper-pearson", covers="population", lo=0.25, hi=0.75, level=0.95)
            add("n_unmeasured", 2.0)
            add("w_true", 0.123, method="oracle")
            for index, delta in enumerate((0.05, 0.02, 0.01)):
                budget = self.lineage | {"stack": stack, "condition": condition, "delta": delta, "first_delta": index == 0}
                budget |= {"alpha": 0.05, "power": 0.8, "w": w, "method": "normal", "covers": "benchmark", "level": 0.95}
                runs = None if w is None else 7 * index + 3
                budget |= {
                    "runs": runs,
                    "runs_lo": runs and runs - 1,
                    "runs_hi": runs and runs + 9,
                    "n_tasks": 30,
                    "note": "",
                    "recommended": runs and runs + 8,
                }
                budget |= {"w_cautious": w, "runs_cautious": runs, "recommended": runs, "mde": None if w is None else 0.03}
                budgets.append(budget | {"n_replicates": self.replicates, "seed": None, "resamples": None, "undefined": undefined})
        judge = [self.estimate("s1", "judge", "verdict_w", 0.1), self.estimate("s1", "judge", "unparsed_share", 0.0)]
        checks = [
            self.lineage
            | {"check": "c", "stack": "", "condition": "", "severity": "info", "blocks": False, "sentence": f"{n}", "value": None}
            for n in range(extra + 1)
        ]
        writes = [PartitionWrite(ESTIMATES, {}, estimates + judge, "all"), PartitionWrite(BUDGETS, {}, budgets, "all")]
        self.at.commit("analyse", [*writes, PartitionWrite(CHECKS, {}, checks, "all"), PartitionWrite(CONTRASTS, {}, [], "all")])

    def complete(self) -> Study:
        self.plan()
        self.outcomes()
        self.analyse()
        return self


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(tmp_path / "store")


def rows(store: Store, sql: str, **values: Any) -> list[dict[str, Any]]:
    connection = connect(store.root)
    try:
        result = connection.execute(sql, values)
        names = [column[0] for column in result.description]
        return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
    finally:
        connection.close()


def test_the_headers_name_exactly_the_columns(store):
    Study(store)
    for view in load_views():
        described = [row["column_name"] for row in rows(store, f"describe {view.name}")]
        assert described == [name for name, _ in view.columns], view.name
        assert view.grain
    assert {"protocols", "partitions", "progress", "task_counts", "noise_floor_all", "noise_floor"} <= {
        view.name for view in load_views()
    }


def test_every_sql_file_is_loaded():
    names = {path.stem for path in (ROOT / "schemas" / "sql").glob("*.sql")}
    assert names == {view.name for view in load_views()}


def test_the_sql_files_and_the_prices_ship_in_the_wheel(tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    macros = {f"schemas/sql/macros/{macro.name}.sql" for macro in load_macros()}
    assert {f"schemas/sql/{view.name}.sql" for view in load_views()} | macros | {"evalnoise/prices.toml"} <= names


@pytest.mark.parametrize(
    "text", ["", "SELECT 1", "-- view: x\n-- grain: y\n-- columns:\n--   a: b\n", "-- view: x\n-- grain: y\nSELECT 1"]
)
def test_a_file_without_its_header_is_refused(text):
    with pytest.raises(ValueError, match="a name, a grain, columns and a statement"):
        parse_view(text)


def test_the_reference_page_is_up_to_date():
    page = (ROOT / "docs" / "reference" / "views.md").read_text("utf-8")
    assert page == reference_markdown(), "run: python -m schemas.views > docs/reference/views.md"
    for table in TABLES.values():
        for column in reader_columns(table):
            assert f"| `{column.name}` |" in page


def test_noise_floor_has_what_was_promised_and_each_number_from_its_row(store):
    study = Study(store).complete()
    found = rows(store, "from noise_floor order by stack, condition")
    assert list(found[0])[: len(SPEC) - 6] == SPEC[:-6]
    assert set(SPEC) <= set(found[0])
    assert [(row["stack"], row["condition"]) for row in found] == list(itertools.product(("s1", "s2"), ("live", "temp0")))
    for row in found:
        table = study.passes[row["stack"], row["condition"]]
        w = float(table.var(axis=1, ddof=1).mean())
        varied = int((table.any(axis=1) & ~table.all(axis=1)).sum())
        expected = study.lineage | {"stack": row["stack"], "condition": row["condition"], "n_tasks": 30, "n_replicates": 5}
        expected |= {"n_unmeasured": 2, "score": float(table.mean()), "score_run_sd": (w / 30) ** 0.5, "w": w}
        expected |= {"w_lo": w - 0.02, "w_hi": w + 0.03, "w_bench_lo": w - 0.002, "w_bench_hi": w + 0.003}
        expected |= {"w_gaffke_lo": w - 0.5, "w_gaffke_hi": w + 0.5}
        expected |= {"variable_tasks": varied, "variable_share": varied / 30, "variable_lo": 0.25, "variable_hi": 0.75}
        expected |= {"near_limit": 0}
        expected |= {"delta": 0.05, "runs": 3, "runs_lo": 2, "runs_hi": 12, "w_undefined": "", "note": "few"}
        expected |= {"runs_recommended": 3}
        passed = int(table.sum())
        expected |= {"n_passed": passed, "n_measured": 150, "n_missing": 0}
        expected |= {"score_missing_fail": passed / 150, "score_missing_pass": passed / 150}
        expected |= dict.fromkeys(CLASSES, 0)
        assert row == expected
        assert {name: type(row[name]) for name in ("n_unmeasured", "variable_tasks", "runs")} == {
            "n_unmeasured": int, "variable_tasks": int, "runs": int,
        }  # fmt: skip


def test_w_recomputed_from_outcomes_in_sql_is_the_view_s(store):
    """Also with cells that were not measured: they are in no variance."""
    study = Study(store, replicates=6, seed=3)
    study.plan()
    holes = {(4, 1), (4, 2), (17, 5)}
    study.outcomes(holes)
    keep = np.ones((30, 6), dtype=bool)
    for hole in holes:
        keep[hole] = False
    expected = {
        key: float(np.mean([table[i][keep[i]].var(ddof=1) for i in range(30)])) for key, table in study.passes.items()
    }  # fmt: skip
    study.known_w = expected
    study.analyse()
    view = {(row["stack"], row["condition"]): row["w"] for row in rows(store, "from noise_floor")}
    again = {(r["stack"], r["condition"]): r["w"] for r in rows(store, W_FROM_OUTCOMES, protocol=study.at.protocol)}
    counts = rows(
        store,
        "select stack, condition, avg(passes * (runs - passes) / (runs * (runs - 1))) as w, sum(unmeasured) as unmeasured "
        "from task_counts group by all having min(runs) >= 2",
    )
    assert view.keys() == again.keys() == expected.keys()
    for key, w in expected.items():
        assert abs(view[key] - w) < 1e-12
        assert abs(again[key] - w) < 1e-12
    assert {(r["stack"], r["condition"]): r["unmeasured"] for r in counts} == dict.fromkeys(expected, 3)
    assert all(abs(r["w"] - expected[r["stack"], r["condition"]]) < 1e-12 for r in counts)


def test_one_run_is_refused_and_not_skipped(store):
    study = Study(store, replicates=1).complete()
    for row in rows(store, "from noise_floor"):
        assert (row["w"], row["w_lo"], row["w_bench_hi"], row["runs"]) == (None, None, None, None)
        assert row["w_undefined"] == "one run has no variance"
        assert row["score"] is not None
    assert {row["w"] for row in rows(store, W_FROM_OUTCOMES, protocol=study.at.protocol)} == {None}


def test_one_task_measured_once_makes_w_undefined_and_not_an_average_over_fewer(store):
    study = Study(store, replicates=3)
    study.outcomes({(9, 1), (9, 2)})
    assert {row["w"] for row in rows(store, W_FROM_OUTCOMES, protocol=study.at.protocol)} == {None}


def test_noise_floor_shows_the_newest_complete_protocol_of_each_study(store):
    old, new = Study(store, seed=1).complete(), Study(store, seed=2).complete()
    other = Study(store, "other", replicates=2).complete()
    partial = Study(store, seed=4)
    partial.plan()
    partial.analyse()
    stale = Study(store, "stale", seed=5)
    stale.plan()
    stale.analyse()
    stale.outcomes()

    def shown(view: str) -> set[str]:
        return {row["protocol"] for row in rows(store, f"select distinct protocol from {view}")}

    statuses = {row["protocol"]: row["status"] for row in rows(store, "from protocols")}
    assert statuses == {
        old.at.protocol: "complete", new.at.protocol: "complete", other.at.protocol: "complete",
        partial.at.protocol: "partial", stale.at.protocol: "partial",
    }  # fmt: skip
    assert shown("noise_floor") == {new.at.protocol, other.at.protocol}
    assert shown("noise_floor_all") == set(statuses)
    assert len(rows(store, "from noise_floor")) == 8
    assert len(rows(store, "from noise_floor_all")) == 20
    (new.at.path / new.at.files(OUTCOMES)[0].path).unlink()
    new.at.mark("note")
    assert shown("noise_floor") == {old.at.protocol, other.at.protocol}
    assert [row["status"] for row in rows(store, f"from protocols where protocol = '{new.at.protocol}'")] == ["damaged"]


def test_analysing_again_doubles_nothing(store):
    study = Study(store).complete()
    study.analyse(extra=1)
    study.analyse(gaffke=False)
    assert len(rows(store, "from noise_floor")) == len(rows(store, "from noise_floor_all")) == 4
    assert len(rows(store, "from budgets")) == 12
    assert len(rows(store, "from checks")) == 1
    assert rows(store, "from progress where table_name = 'estimates'")[0]["n_files"] == 1


def test_conditions_without_a_score_are_no_operating_conditions(store):
    Study(store).complete()
    assert rows(store, "from estimates where condition = 'judge'") != []
    assert rows(store, "from noise_floor_all where condition = 'judge'") == []


def test_progress_counts_rows(store):
    study = Study(store).complete()
    found = {row["table_name"]: (row["n_files"], row["n_rows"]) for row in rows(store, "from progress")}
    assert found["outcomes"] == (20, 600)
    assert (found["budgets"], found["contrasts"]) == ((1, 12), (1, 0))
    (facts,) = rows(store, "select n_planned, n_shards, replicates, n_tasks, benchmark, night, problem from protocols")
    assert facts == {
        "n_planned": 21,
        "n_shards": 21,
        "replicates": 5,
        "n_tasks": 30,
        "benchmark": "b",
        "night": None,
        "problem": "",
    }
    assert study.at.status().complete
