"""Variance components of a study: what each of its designs identifies, in `estimates`, `checks` and `find_grades`."""

from contextlib import closing

import pytest

import evalnoise
from evalnoise.readers.grades import find_grades
from evalnoise.stats.nested.components import components
from evalnoise.stats.nested.sums import from_counts, from_long
from schemas.errors import StoreError
from schemas.study import Study
from tasks.analysis.components import Graded, component_findings
from tests.support import stages

JUDGES = {
    "repeats": 4,
    "conditions": [
        {"name": "judge-warm", "model": "j", "provider": {"name": "oracle", "flip": 0.3, "seed": 3, "unparsed": 0.3}},
        {"name": "judge-cold", "model": "j", "provider": {"name": "oracle", "flip": 0.0}},
    ],
}
CONDITIONS = [
    {"name": "live", "kind": "live"},
    {"name": "replay", "kind": "replay", "source": {"condition": "live"}},
    {"name": "reverify", "kind": "reverify", "source": {"condition": "live"}},
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    folder = tmp_path_factory.mktemp("components")
    study = Study.model_validate(stages.body(conditions=CONDITIONS, judge=JUDGES, replicates=2))
    stages.run(study, folder, limit=4)
    return folder


@pytest.fixture(scope="module")
def estimates(root):
    query = "select condition, estimate, method, value, undefined, note from estimates where estimate like 'component%'"
    return {(row[0], row[1].removeprefix("component_"), row[2]): row[3:] for row in stages.rows(root, query)}


PLAIN, DRAWN = "nested analysis of variance", "percentile task bootstrap"


def test_fresh_runs_are_generations_and_their_within_variance_is_w(root, estimates):
    value, undefined, _ = estimates["live", "generation_grader", DRAWN]
    ((w,),) = stages.rows(root, "select w from noise_floor where condition = 'live'")
    assert value == pytest.approx(w, abs=1e-12)
    assert undefined == ""
    assert estimates["live", "task", DRAWN][0] is not None
    assert estimates["live", "task_clipped", PLAIN][0] == max(0.0, estimates["live", "task", DRAWN][0])
    for name in ("generation", "grader"):
        value, undefined, _ = estimates["live", name, PLAIN]
        assert value is None
        assert "no generation has two grades" in undefined


@pytest.mark.parametrize(("condition", "who"), [("replay", "its replicates verify"), ("judge-warm", "a judge condition grades")])
def test_repeats_of_a_frozen_output_are_grades(estimates, condition, who):
    assert estimates[condition, "grader", DRAWN][0] is not None
    assert estimates[condition, "task_generation", DRAWN][0] is not None
    for name in ("task", "generation"):
        value, undefined, _ = estimates[condition, name, PLAIN]
        assert value is None
        assert undefined.startswith(who)


def test_what_never_varied_has_a_limit(estimates):
    assert estimates["judge-cold", "grader", DRAWN][2].startswith("proves nothing")
    assert ("judge-cold", "grader", "one-sided limit, nothing varied") in estimates


def test_fresh_runs_and_a_reverification_are_combined_under_a_stated_assumption(estimates):
    value, _, note = estimates["live", "generation_combined", DRAWN]
    assert estimates["live", "generation_combined", "gaffke"][0] == value
    assert value == pytest.approx(estimates["live", "generation_grader", DRAWN][0] - estimates["reverify", "grader", DRAWN][0])
    assert "grader of reverify" in note
    assert "assumes" in note
    assert not any(name == "generation_combined" for condition, name, _ in estimates if condition != "live")


def test_grades_of_a_store_give_the_same_numbers(root, estimates):
    with closing(evalnoise.connect(root)) as connection:
        for condition, of in (("live", "generation_grader"), ("reverify", "grader"), ("judge-warm", "grader")):
            for text in (f"small/a/{condition}", f"small/{condition}"):
                grades = find_grades(connection, root, text)
                found = components(from_long(grades.task, grades.output, grades.scores, n_tasks=len(grades.tasks)))
                parts = {part.of.value.replace("+", "_"): part.raw for part in found.parts}
                assert parts[of] == estimates[condition, of, DRAWN][0]
        unparsed = connection.execute(
            "select count(*) from verdicts where condition = 'judge-warm' and verdict = 'unparsed'"
        ).fetchone()
        assert find_grades(connection, root, "small/a/judge-warm").missing == unparsed[0] > 0
        with pytest.raises(StoreError, match="expected one condition of"):
            find_grades(connection, root, "small/a/nothing")


def test_the_checks(root):
    found = stages.rows(root, 'select "check", condition, severity, blocks from checks where "check" = \'grades_constant\'')
    assert found == [("grades_constant", "judge-cold", "info", False)]


def test_findings_about_components():
    flat = from_counts([1, 1, 1], [2, 2, 2])
    (negative, few, within) = component_findings([Graded("a", "live", flat, components(flat), frozen=False, judge=False)])
    assert negative[:4] == ("component_negative", "a", "live", "info")
    assert negative[5] < 0
    assert few[0] == within[0] == "component_few"
    assert "2 degrees of freedom" in few[4]
    plenty = from_counts([0, 5] * 20, [5] * 40)
    assert list(component_findings([Graded("a", "live", plenty, components(plenty), frozen=False, judge=False)])) == []
