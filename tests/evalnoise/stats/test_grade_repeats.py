"""How many grades are enough: the published study's figures, the rules by brute force, and flips."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.stats.nested.repeats import MAX_CURVE, dependability, flip_compression, k_selection, repeats_needed

REFERENCE = json.loads((Path(__file__).parents[2] / "reference" / "nested_components.json").read_text(encoding="utf-8"))
STUDIES = REFERENCE["grader_variance_demo"]
numbers = st.floats(1e-4, 1.0)


@pytest.mark.parametrize("study", STUDIES, ids=[study["grader"] for study in STUDIES])
def test_the_published_figures(study):
    parts = {name: study[name] for name in ("question", "grader")}
    found = k_selection(**parts, model=study["model"], n_tasks=study["n_tasks"], completions=study["completions"])
    assert found.k == study["recommended_k"]
    assert [point.score_se for point in found.curve] == pytest.approx(study["score_se"], abs=1e-9)
    assert [point.dependability for point in found.curve] == pytest.approx(study["dependability"], abs=1e-9)
    assert found.curve[-1].score_se == pytest.approx(study["stderr"], abs=1e-9), "the study had twelve grades"
    assert [point.k for point in found.curve] == list(range(1, 13))
    assert repeats_needed(study["question"], study["model"], study["grader"], target=0.9).k == study["repeats_for_0.9"]


@given(numbers, numbers, st.integers(1, 5), st.sampled_from([0.01, 0.05, 0.1, 0.5]))
def test_k_is_the_smallest_that_the_rule_allows(question, grader, completions, tol):
    found = k_selection(question, grader, n_tasks=10, completions=completions, tol=tol)
    allowed = tol * question * (1 + 1e-9)
    assert grader / (completions * found.k) <= allowed
    if found.k > 1:
        assert grader / (completions * (found.k - 1)) > tol * question
    assert f"{found.k} grade" in found.sentence
    assert len(found.curve) == min(MAX_CURVE, max(12, found.k))


def test_an_exact_ratio_does_not_ask_for_one_more():
    assert k_selection(1.0, 0.05, n_tasks=5).k == 1
    assert k_selection(0.1, 0.05, n_tasks=5).k == 10
    assert k_selection(0.3, 0.03, n_tasks=5, tol=0.1, completions=1).k == 1
    assert repeats_needed(0.1, 0.0, 0.1, target=0.9).k == 9


def test_the_ends_of_the_rule():
    none = k_selection(-0.001, 0.02, n_tasks=5)
    assert (none.k, len(none.curve)) == (None, 12)
    assert "no number of grades" in none.undefined
    assert "no number of grades" in none.sentence
    assert k_selection(-0.001, 0.0, n_tasks=5).k == 1
    assert "no proof" in k_selection(0.1, 0.0, n_tasks=5).sentence
    zero = k_selection(0.1, -0.01, n_tasks=5)
    assert zero.k == 1
    assert "not above 0" in zero.sentence
    endless = k_selection(1e-9, 0.2, n_tasks=5)
    assert endless.k > 10**9
    assert len(endless.curve) == MAX_CURVE
    for wrong in ({"tol": 0.0}, {"n_tasks": 0}, {"completions": 0}):
        with pytest.raises(ValueError, match="at least 1"):
            k_selection(0.1, 0.1, **({"n_tasks": 5} | wrong))


@given(numbers, numbers, numbers, st.floats(0.05, 0.99))
def test_repeats_needed_is_the_smallest_that_reaches_the_target(question, model, grader, target):
    found = repeats_needed(question, model, grader, target=target)
    assert found.reached >= target * (1 - 1e-9)
    assert found.reached == dependability(question, model, grader, k=found.k)
    if found.k > 1:
        assert dependability(question, model, grader, k=found.k - 1) < target


def test_undefined_dependability():
    assert dependability(-0.1, 0.0, 0.0, k=1) is None
    assert dependability(-0.1, 0.0, 0.1, k=3) == 0.0
    assert "nothing varies" in repeats_needed(0.0, 0.0, 0.0).undefined
    assert "no number of grades" in repeats_needed(0.0, -0.1, 0.2).undefined
    with pytest.raises(ValueError, match="between 0 and 1"):
        repeats_needed(0.1, 0.1, 0.1, target=1.0)
    with pytest.raises(ValueError, match="at least 1"):
        dependability(0.1, 0.1, 0.1, k=0)


@given(st.floats(0.0, 0.49), st.floats(0.0, 1.0), st.floats(0, 0.25), st.floats(0, 0.25))
def test_flips_are_undone(flip, score, task, generation):
    kept = (1 - 2 * flip) ** 2
    seen = {"task": kept * task, "generation": kept * generation, "score": flip + (1 - 2 * flip) * score}
    found = flip_compression(grader=flip * (1 - flip), binary=True, **seen)
    assert found.flip == pytest.approx(flip, abs=1e-9)
    assert found.scale == pytest.approx(1 - 2 * flip, abs=1e-9)
    assert (found.task, found.generation, found.score) == pytest.approx((task, generation, score), abs=1e-6)


def test_where_flips_cannot_be_undone():
    whole = {"task": 0.1, "generation": None, "score": 0.5}
    assert "coin" in flip_compression(grader=0.25, binary=True, **whole).undefined
    assert "negative" in flip_compression(grader=-0.01, binary=True, **whole).undefined
    assert "not pass or fail" in flip_compression(grader=0.01, binary=False, **whole).undefined
    found = flip_compression(grader=0.09, binary=True, **whole)
    assert (found.flip, found.generation) == (pytest.approx(0.1), None)
    assert found.task == pytest.approx(0.1 / 0.64)
