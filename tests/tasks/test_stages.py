"""A whole study through the stages: what is sealed, what is computed from it, and what must be refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalnoise.providers.oracle import rate
from evalnoise.stats.planning.budget import rerun_budget
from schemas.provider import OracleProvider
from schemas.study import Study
from tests.support import stages

JUDGE = {
    "repeats": 4,
    "conditions": [
        {"name": "sure", "model": "j", "provider": {"name": "oracle", "seed": 1, "flip": 0.0}},
        {"name": "torn", "model": "j", "provider": {"name": "oracle", "seed": 2, "flip": 0.5, "unparsed": 0.3}},
    ],
}


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("stages") / "store"
    body = stages.body(judge=JUDGE, replicates=4)
    body["stacks"][0]["verifier"] = stages.PROCESS | {"workers": 2}
    stages.run(Study.model_validate(body), root, limit=12)
    return root


def test_every_cell_has_one_outcome_and_every_call_its_rows(store) -> None:
    assert stages.rows(
        store, "select condition, count(*), count(distinct (task_id, replicate)) from outcomes group by 1 order by 1"
    ) == [
        ("cold", 48, 48),
        ("live", 48, 48),
        ("replay", 48, 48),
    ]
    # A cell has a second attempt exactly where the first one failed.
    assert stages.rows(
        store,
        """
        select count(*) from outcomes o join executions e using (stack, condition, replicate, task_id)
        where e.attempt = 0 and (o.attempts = 2) <> (e.outcome = 'fail')
        """,
    ) == [(0,)]
    assert stages.rows(store, "select count(*) from outcomes where attempts = 2")[0][0] > 5
    assert stages.rows(store, "select count(distinct protocol), count(distinct study) from outcomes") == [(1, 1)]


def test_a_replay_makes_no_call_and_repeats_its_source(store) -> None:
    assert stages.rows(store, "select distinct condition from calls where purpose = 'generate' order by 1") == [
        ("cold",),
        ("live",),
    ]
    assert stages.rows(
        store,
        """
        select count(*) from generations r join generations l using (stack, task_id, attempt)
        where r.condition = 'replay' and l.condition = 'live' and l.replicate = 0
            and (r.text_sha256, r.request_key, r.candidate_sha256)
                is distinct from (l.text_sha256, l.request_key, l.candidate_sha256)
        """,
    ) == [(0,)]
    assert stages.rows(store, "select score, w, variable_tasks from noise_floor where condition = 'replay'")[0][1:] == (0.0, 0)


def test_noise_floor_is_what_the_outcomes_say(store) -> None:
    by_hand = """
        with k as (
            select condition, task_id, count(*) as n, count(*) filter (where outcome = 'pass') as k
            from outcomes where outcome <> 'unmeasured' group by all
        )
        select condition, count(*), avg(k / n), avg(k * (n - k) / (n * (n - 1))), sqrt(avg(k * (n - k) / (n * (n - 1))) / count(*)),
            count(*) filter (where k > 0 and k < n)
        from k group by condition order by condition
    """
    sealed = "select condition, n_tasks, score, w, score_run_sd, variable_tasks from noise_floor order by condition"
    for ours, theirs in zip(stages.rows(store, sealed), stages.rows(store, by_hand), strict=True):
        assert ours[:2] == theirs[:2]
        assert ours[2:5] == pytest.approx(theirs[2:5], abs=1e-12)
        assert ours[5] == theirs[5]


def test_intervals_and_budgets_are_where_the_view_says(store) -> None:
    query = """
        select n.condition, n.w, n.w_lo, n.w_hi, n.w_bench_lo, n.w_bench_hi, n.n_tasks, n.runs, n.runs_lo, n.runs_hi, n.delta,
            p.lo, p.hi, b.lo, b.hi, n.variable_tasks, n.w_gaffke_lo, n.w_gaffke_hi
        from noise_floor n
        join estimates p on (p.stack, p.condition, p.estimate, p.method) = (n.stack, n.condition, 'w', 'percentile task bootstrap')
        join estimates b on (b.stack, b.condition, b.estimate, b.covers) = (n.stack, n.condition, 'w', 'benchmark')
        order by 1
    """
    found = stages.rows(store, query)
    assert [row[0] for row in found] == ["cold", "live", "replay"]
    for _, w, lo, hi, bench_lo, bench_hi, n, runs, runs_lo, runs_hi, delta, *ends, varied, gaffke_lo, gaffke_hi in found:
        assert [lo, hi, bench_lo, bench_hi] == ends
        assert delta == 0.1
        assert varied < 20, "so that the interval to quote is Gaffke's"
        assert (runs, runs_lo, runs_hi) == tuple(rerun_budget(v, v, n, 0.1) for v in (w, gaffke_lo, gaffke_hi))
    assert stages.rows(store, "select condition, delta, runs from budgets where condition = 'live' and not first_delta") == [
        ("live", 0.3, rerun_budget(found[1][1], found[1][1], 12, 0.3))
    ]


def test_the_true_w_is_that_of_the_rates_after_the_retry(store) -> None:
    tasks = [row[0] for row in stages.rows(store, "select task_id from tasks order by position")]
    for condition, temperature in (("live", 0.7), ("cold", 0.0)):
        spec = OracleProvider(name="oracle", seed=5, stable=0.0, alpha=1.0, beta=1.0, temperature=temperature)
        p = np.array([1 - (1 - rate(spec, task)) ** 2 for task in tasks])
        told = stages.rows(
            store, f"select value, covers, method from estimates where estimate = 'w_true' and condition = '{condition}'"
        )
        assert told[0][0] == pytest.approx(float(np.mean(p * (1 - p))), abs=1e-15)
        assert told[0][1:] == ("", "oracle")
    assert stages.rows(store, "select value from estimates where estimate = 'w_true' and condition = 'replay'") == [(0.0,)]


def test_contrasts_are_untruncated_and_a_replays_score_is_one_draw(store) -> None:
    found = stages.rows(
        store,
        """
        with e as (select distinct condition, estimate, value from estimates)
        select c.condition_a, c.condition_b, c.estimate, c.value - (a.value - b.value), c.lo, c.hi, c.finding, c.note, c.method
        from contrasts c
        join e a on (a.condition, a.estimate) = (c.condition_a, c.estimate)
        join e b on (b.condition, b.estimate) = (c.condition_b, c.estimate)
        """,
    )
    assert {row[:3] for row in found} == {
        (a, b, e) for a, b in (("live", "cold"), ("live", "replay"), ("cold", "replay")) for e in ("score", "w")
    }
    for _, b, estimate, off, lo, hi, finding, note, method in found:
        assert off == pytest.approx(0, abs=1e-12)
        if estimate == "score" and b == "replay" and method == "plug-in variance":
            assert (lo, hi, finding) == (None, None, "proves nothing")
        elif lo is None or note.startswith("proves nothing"):
            assert finding == "proves nothing"
        else:
            assert finding == ("real" if lo > 0 or hi < 0 else "not resolved")
    # Every sentence names its finding.
    assert stages.rows(store, "select count(*) from contrasts where not contains(sentence, finding)") == [(0,)]


def test_judges_see_the_frozen_candidates_of_replicate_0(store) -> None:
    assert stages.rows(
        store,
        """
        select count(*) from verdicts v join outcomes o on o.task_id = v.task_id and o.condition = 'replay' and o.replicate = 0
        where (v.candidate_sha256, v.reference_outcome) is distinct from (o.candidate_sha256, o.outcome)
        """,
    ) == [(0,)]
    assert stages.rows(store, "select condition, count(*) from verdicts group by 1 order by 1") == [("sure", 48), ("torn", 48)]
    # The judge that never flips agrees with every execution; the torn one does not repeat itself and cannot always be read.
    sure = dict(stages.rows(store, "select estimate, value from estimates where condition = 'sure' and estimate like 'verdict_%'"))
    assert (sure["verdict_w"], sure["verdict_disagreement"], sure["verdict_unparsed_share"]) == (0, 0, 0)
    torn = dict(stages.rows(store, "select estimate, value from estimates where condition = 'torn' and estimate like 'verdict_%'"))
    unparsed, asked = stages.rows(
        store, "select count(*) filter (where verdict = 'unparsed'), count(*) from verdicts where condition = 'torn'"
    )[0]
    assert torn["verdict_unparsed_share"] == pytest.approx(unparsed / asked)
    assert torn["verdict_w"] > 0.1
    blocking = "select stack, condition, severity from checks where \"check\" = 'judge_unparsed' and blocks"
    assert stages.rows(store, blocking) == ([("a", "torn", "error")] if unparsed > 0.2 * asked else [])


def test_the_same_seed_gives_the_same_bytes(store, tmp_path) -> None:
    from schemas.tables import BUDGETS, CONTRASTS
    from tests.support.stores import differences, file_digests, only_study

    again = tmp_path / "again"
    stages.run(Study.model_validate(stages.body(judge=JUDGE, replicates=4)), again, limit=12)
    assert differences(store, again) == []
    for table in (CONTRASTS, BUDGETS):
        assert file_digests(only_study(store), table) == file_digests(only_study(again), table)


def test_one_replicate_has_a_score_and_no_variance(tmp_path) -> None:
    stages.run(Study.model_validate(stages.body(replicates=1)), tmp_path / "s", limit=4)
    found = stages.rows(
        tmp_path / "s", "select n_tasks, score is not null, w, w_lo, w_bench_lo, runs, w_undefined from noise_floor"
    )
    assert len(found) == 3
    for n_tasks, scored, *undefined, reason in found:
        assert scored
        assert undefined == [None] * 4
        assert "2 runs" in reason
        assert n_tasks == 4
    assert stages.rows(tmp_path / "s", "select severity from checks where \"check\" = 'one_replicate'") == [("warning",)]
