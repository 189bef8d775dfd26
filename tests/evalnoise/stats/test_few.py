"""The note of an interval that rests on few tasks."""

from __future__ import annotations

import numpy as np
import pytest

from evalnoise.stats.contrasts import Finding, score_contrast
from evalnoise.stats.few import carriers, few_note
from evalnoise.stats.intervals import score_population

OPTIONS = {"seed": 0, "resamples": 200}


def test_carriers_by_hand():
    assert carriers(np.array([1.0, 1, 1, 0, 0])) == 3
    assert carriers(np.array([3.0, 1])) == 1.6
    assert carriers(np.array([1.0, -1])) == 0
    assert carriers(np.zeros(4)) == 0


@pytest.mark.parametrize(
    ("fails", "tasks", "said"),
    [
        (1, 200, "it rests on hardly more than one task: under 15 the interval covers less often than it says"),
        (14, 200, "it rests on about 14 of 200 tasks: under 15 the interval covers less often than it says"),
        (15, 200, ""),
        (186, 200, "it rests on about 14 of 200 tasks: under 15 the interval covers less often than it says"),
        (15, 29, "it rests on about 14 of 29 tasks: under 15 the interval covers less often than it says"),
        (15, 30, ""),
    ],
)
def test_a_score_of_few_failures_or_few_passes_says_so(fails, tasks, said):
    passes = np.where(np.arange(tasks) < fails, 0, 4)
    assert score_population(passes, np.full(tasks, 4), **OPTIONS).note == said


def test_few_tasks_are_few_whatever_they_give():
    assert few_note(np.ones(29)) == "29 tasks: under 30 the interval covers less often than it says"
    assert few_note(np.ones(30)) == ""


@pytest.mark.parametrize(("better", "said"), [(3, "it rests on about 3 of 500 tasks"), (14, "it rests on about 14"), (15, "")])
def test_a_difference_that_few_tasks_carry_is_real_but_says_so(better, said):
    base = np.tile([0, 4], 250)
    new = base + 2 * ((np.arange(500) < 2 * better) & (base == 0))
    found = score_contrast(new, np.full(500, 4), base, np.full(500, 4), **OPTIONS)
    assert found.result.note.startswith(said)
    assert bool(found.result.note) == bool(said)
    assert found.result.value == pytest.approx(2 * better / 4 / 500)
    if better > 3:
        assert found.finding is Finding.REAL


NOISE = np.random.default_rng(3).normal(size=40)


def test_many_tasks_that_cancel_out_do_not_rest_on_one():
    level = NOISE - NOISE.mean()
    for parts in (level, -level + 0.1, level[:20], np.tile([1.0, -1.0], 20), np.tile([1.0, -1.0], 3)):
        assert few_note(parts).startswith("it is no larger than its own noise, so it cannot be told how many tasks carry it")
        assert few_note(parts).endswith("under 15 the interval covers less often than it says")
    assert few_note(level + 3) == ""


def test_one_task_above_small_noise_is_one_task():
    parts = 0.05 * np.sign(NOISE)
    parts[0] = 10.0
    assert few_note(parts) == "it rests on hardly more than one task: under 15 the interval covers less often than it says"
    parts[1:3] = 10.0
    assert few_note(parts).startswith("it rests on about 3 of 40 tasks")


@pytest.mark.parametrize("scale", [1e200, 1e-200, 5e-324, 1e308])
def test_carriers_know_no_scale(scale):
    parts = np.array([1.0, 1, 1, 0, 0]) * scale
    assert carriers(parts) == pytest.approx(3, rel=1e-12)
    assert few_note(parts) == few_note(parts / scale)
