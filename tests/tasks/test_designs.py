"""Studies of other shapes: two stacks, other levels, replays of replays, recordings, tasks that preflight leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from evalnoise.providers.oracle import true_rates
from evalnoise.stats.planning.budget import rerun_budget
from evalnoise.studyfile.load import load_study
from schemas.errors import StudyError
from schemas.provider import OracleProvider
from schemas.study import Study
from tests.support import stages

TASKS = [
    {
        "id": f"own/{n}",
        "prompt": f"Add {n}.",
        "entry_point": "f",
        "reference": f"def f(x):\n    return x + {n}\n",
        "inputs": [[1], [2]],
    }
    for n in range(1, 7)
]
UNUSABLE = {"id": "own/object", "prompt": "?", "entry_point": "f", "reference": "def f(x):\n    return object()\n", "inputs": [[1]]}


def own_tasks(folder: Path) -> dict[str, str]:
    path = folder / "tasks.jsonl"
    path.write_text("".join(json.dumps(task) + "\n" for task in [*TASKS, UNUSABLE]))
    return {"name": "jsonl", "path": str(path)}


def recordings(folder: Path) -> str:
    """Four recorded answers a task: right, wrong, right, wrong; for the odd tasks all right."""
    path = folder / "recorded.jsonl"
    lines = []
    for number, task in enumerate([*TASKS, UNUSABLE]):
        wrong = "def f(x):\n    return None\n"
        answers = [task["reference"] if number % 2 or r % 2 == 0 else wrong for r in range(4)]
        lines.append(json.dumps({"task_id": task["id"], "generations": answers}) + "\n")
    path.write_text("".join(lines))
    return str(path)


def recorded_study(folder: Path, conditions: list[dict], replicates: int = 4) -> Study:
    provider = {"name": "recording", "path": recordings(folder)}
    stack = {"name": "a", "model": "m", "provider": provider, "verifier": stages.PROCESS}
    plain = stages.body(benchmark=own_tasks(folder), stacks=[stack], conditions=conditions, replicates=replicates)
    return Study.model_validate(plain)


def test_two_stacks_other_levels_and_a_task_left_out(tmp_path) -> None:
    one = stages.body()["stacks"][0]
    other = {**one, "name": "b", "retry": "none", "provider": {**one["provider"], "seed": 9}}
    analysis = {"resamples": 400, "alpha": 0.2, "power": 0.9, "deltas": [0.3, 0.05]}
    plan = Study.model_validate(stages.body(benchmark=own_tasks(tmp_path), stacks=[one, other], analysis=analysis, replicates=6))
    stages.run(plan, tmp_path / "s", limit=None)
    store = tmp_path / "s"
    assert stages.rows(store, "select distinct level from estimates where level is not null") == [(0.8,)]
    assert stages.rows(store, "select distinct level from contrasts where level is not null") == [(0.8,)]
    assert stages.rows(store, "select distinct alpha, power from budgets") == [(0.2, 0.9)]
    query = "select stack, condition, n_tasks, n_unmeasured, w, runs, delta from noise_floor order by 1, 2"
    found = stages.rows(store, query)
    assert [row[:4] for row in found] == [(s, c, 6, 6) for s in "ab" for c in ("cold", "live", "replay")]
    for _, _, n_tasks, _, w, runs, delta in found:
        assert runs == rerun_budget(w, w, n_tasks, delta, alpha=0.2, power=0.9)
        assert delta == 0.3
    # The interval of a score over new runs is z SE at this very level.
    value, lo, hi, w = stages.rows(
        store,
        """
        select s.value, s.lo, s.hi, w.value from estimates s join estimates w using (stack, condition)
        where (stack, condition) = ('b', 'live') and s.estimate = 'score' and s.method = 'plug-in variance'
            and w.estimate = 'w' and w.covers = 'benchmark'
        """,
    )[0]
    half = norm.ppf(0.9) * np.sqrt(w / (6 * 6))
    assert (value - lo, hi - value) == (pytest.approx(half), pytest.approx(half))
    # The task that cannot be measured was never asked about, and is said.
    assert stages.rows(store, "select count(*) from calls where task_id = 'own/object'") == [(0,)]
    said = stages.rows(store, "select stack, value, sentence from checks where \"check\" = 'preflight_failed' order by 1")
    assert [row[:2] for row in said] == [("a", 1.0), ("b", 1.0)]
    assert "unencodable" in said[0][2]
    assert "own/object" in said[0][2]
    # Each stack has its own truth: its seed and its retry rule, over the tasks that were measured.
    ids = [task["id"] for task in TASKS]
    for name, seed, retry in (("a", 5, "resample"), ("b", 9, "none")):
        spec = OracleProvider(name="oracle", seed=seed, stable=0.0, alpha=1.0, beta=1.0, temperature=0.7)
        p = true_rates(spec, ids, retry)
        told = stages.rows(
            store, f"select value, n_tasks from estimates where estimate = 'w_true' and (stack, condition) = ('{name}', 'live')"
        )
        assert told == [(pytest.approx(float(np.mean(p * (1 - p))), abs=1e-15), 6)]
    sentences = [row[0] for row in stages.rows(store, "select sentence from contrasts where stack = stack_b")]
    assert all(text.startswith(("a: ", "b: ")) for text in sentences)
    within = "from contrasts where headline and stack = stack_b"
    per_contrast = f"select count(*) {within} group by stack, condition_a, condition_b, estimate"
    assert stages.rows(store, per_contrast) == [(1,)] * 12


def test_a_replay_of_recorded_cells_of_a_later_replicate(tmp_path) -> None:
    conditions = [
        {"name": "live", "kind": "live"},
        {"name": "third", "kind": "replay", "source": {"condition": "live", "replicate": 3}},
        {"name": "first", "kind": "replay", "source": {"condition": "live", "replicate": 0}},
    ]
    stages.run(recorded_study(tmp_path, conditions), tmp_path / "s", limit=None)
    scores = stages.rows(tmp_path / "s", "select condition, score, variable_tasks from noise_floor order by 1")
    # Occurrence 3 is wrong for the even tasks, occurrence 0 is right for all.
    assert scores == [("first", 1.0, 0), ("live", 0.75, 3), ("third", 0.5, 0)]
    # Neither of two replays has new runs, so no interval over new runs is made of their replicates.
    found = stages.rows(
        tmp_path / "s",
        "select condition_a, condition_b, finding, lo is null from contrasts where estimate = 'score' and headline order by 1, 2",
    )
    assert found == [(a, b, "proves nothing", True) for a, b in (("live", "first"), ("live", "third"), ("third", "first"))]
    reason = "select distinct undefined from contrasts where estimate = 'score' and headline"
    assert stages.rows(tmp_path / "s", reason) == [("replicates that repeat one recorded run say nothing about new runs",)]


def test_a_file_replayed_by_occurrence_is_no_single_draw(tmp_path) -> None:
    conditions = [
        {"name": "live", "kind": "live"},
        {"name": "again", "kind": "replay", "provider": {"pairing": "occurrence"}},
        {"name": "one", "kind": "replay", "provider": {"pairing": "fixed", "occurrence": 1}},
    ]
    stages.run(recorded_study(tmp_path, conditions), tmp_path / "s", limit=None)
    found = stages.rows(
        tmp_path / "s",
        "select condition_a, condition_b, finding from contrasts where estimate = 'score' and headline order by 1, 2",
    )
    assert found == [("again", "one", "proves nothing"), ("live", "again", "not resolved"), ("live", "one", "proves nothing")]
    order = "select severity, sentence from checks where \"check\" = 'order_unknown'"
    assert stages.rows(tmp_path / "s", order)[0][0] == "info"


def test_one_recorded_answer_for_all_replicates_is_no_live_condition(tmp_path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "study: s\nbenchmark: {name: starter}\nreplicates: 2\n"
        "stacks:\n  - name: a\n    model: m\n    provider: {name: recording, path: r.jsonl}\n"
        "conditions:\n  - name: live\n    kind: live\n    provider: {pairing: fixed}\n"
    )
    with pytest.raises(StudyError, match="is a replay") as caught:
        load_study(path)
    assert "study.yaml:11" in str(caught.value)


def test_judges_are_shown_replicate_0_and_only_what_was_measured(tmp_path) -> None:
    conditions = [{"name": "again", "kind": "replay", "provider": {"pairing": "occurrence"}}]
    plan = recorded_study(tmp_path, conditions)
    judge = {"conditions": [{"name": "j", "model": "m", "provider": {"name": "oracle", "flip": 0.2, "seed": 3}}], "repeats": 3}
    plan = Study.model_validate(plan.model_dump(exclude_unset=True) | {"judge": judge})
    stages.run(plan, tmp_path / "s", limit=None)
    # Occurrence 0 passes for every task; occurrence 1 does not. The task without a reference is not judged.
    assert stages.rows(tmp_path / "s", "select distinct reference_outcome from verdicts") == [("pass",)]
    assert stages.rows(tmp_path / "s", "select count(*), count(distinct task_id) from verdicts") == [(18, 6)]
    assert stages.rows(tmp_path / "s", "select value from estimates where estimate = 'verdict_w_true'") == [(pytest.approx(0.16),)]
