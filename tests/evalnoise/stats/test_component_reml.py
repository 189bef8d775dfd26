"""REML agrees with the analysis of variance inside, and is no number on the boundary, without a maximum or without convergence."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from evalnoise.stats.nested import reml as component_reml
from evalnoise.stats.nested.components import Level, components
from evalnoise.stats.nested.reml import reml
from evalnoise.stats.nested.sums import from_array


def long(y):
    n, k, g = y.shape
    return np.repeat(np.arange(n), k * g), np.repeat(np.arange(n * k), g), y.ravel()


def normal(seed, task, generation, grader, shape=(12, 3, 2)):
    generator, (n, k, _) = np.random.default_rng(seed), shape
    return sum(sd * generator.normal(size=size) for sd, size in ((task, (n, 1, 1)), (generation, (n, k, 1)), (grader, shape)))


@pytest.mark.parametrize("shape", [(12, 3, 2), (12, 1, 4), (12, 4, 1)], ids=["three levels", "grades", "generations"])
def test_inside_it_is_the_analysis_of_variance(shape):
    y = normal(1, 1.0, 1.0, 0.7, shape)
    found = components(from_array(y))
    assert min(part.raw for part in found.parts) > 0.1
    fit = reml(*long(y))
    assert (fit.converged, fit.failed) == (True, "")
    assert fit.components == {part.of: pytest.approx(part.raw, abs=1e-3 * found.total) for part in found.parts}
    assert fit.largest_difference < 1e-3
    assert fit.agrees


def minus_two_log_likelihood(variances, task, output, values):
    """Of the restricted likelihood, but for a constant, from the covariance of all grades."""
    of_task, of_output, grader = variances
    covariance = of_task * (task[:, None] == task) + of_output * (output[:, None] == output) + grader * np.eye(len(values))
    inverse = np.linalg.inv(covariance)
    weight = inverse.sum()
    residual = values - inverse.sum(axis=0) @ values / weight
    return np.linalg.slogdet(covariance)[1] + np.log(weight) + residual @ inverse @ residual


def test_unbalanced_it_is_where_the_restricted_likelihood_is_largest():
    task, output, values = long(1000 + normal(8, 1.0, 1.0, 0.7))
    kept = np.random.default_rng(8).random(len(values)) < 0.7
    task, output, values = task[kept], output[kept], values[kept]
    fit = reml(task, output, values)
    assert (fit.failed, fit.balanced, fit.agrees) == ("", False, None)
    found = np.array([fit.components[level] for level in (Level.TASK, Level.GENERATION, Level.GRADER)])
    here = minus_two_log_likelihood(found, task, output, values)
    for step in np.vstack([np.eye(3), -np.eye(3)]):
        assert here < minus_two_log_likelihood(found * (1 + 0.01 * step), task, output, values)


def test_a_negative_component_ends_on_the_boundary_and_is_no_number():
    y = normal(6, 1.0, 0.0, 1.0)
    y -= y.mean(axis=2, keepdims=True) - y.mean(axis=(1, 2), keepdims=True)
    assert components(from_array(y)).generation.raw < 0
    fit = reml(*long(y))
    assert fit.components is None
    assert fit.failed
    assert (fit.largest_difference, fit.agrees) == (None, None)


def test_grades_that_never_differ_have_no_maximum():
    """The published cross-check fitted such data: 0.0031 where the analysis of variance says 0.0994, 32 times off."""
    reference = json.loads((Path(__file__).parents[2] / "reference" / "nested_components.json").read_text(encoding="utf-8"))
    haiku = reference["grader_variance_demo"][0]
    assert haiku["question"] / haiku["reml"]["question"] == pytest.approx(32.1, abs=0.05)
    y = np.repeat(normal(2, 1.0, 1.0, 0.0, (12, 3, 1)), 4, axis=2)
    fit = reml(*long(y))
    assert fit.components is None
    assert "no maximum" in fit.failed
    assert "no maximum" in reml(*long(np.repeat(normal(2, 1.0, 0.0, 0.0, (12, 1, 1)), 4, axis=1))).failed


@pytest.mark.parametrize(
    ("parts", "said", "converged", "reason"),
    [
        ((0.1, 0.1, 0.1), (), False, "did not converge; it stopped at task 0.1"),
        ((0.1, 0.0, 0.1), (), True, "on the boundary"),
        ((0.1, 0.1, 0.1), ("The MLE may be on the boundary of the parameter space.",), True, "on the boundary"),
        ((0.1, 0.1, float("nan")), (), True, "not finite"),
        ((0.1, 0.1, 0.1), ("Retrying with another",), True, "warned: Retrying"),
        ((0.1, 0.1, 0.1), (), True, ""),
    ],
)
def test_every_doubt_is_a_failure(monkeypatch, parts, said, converged, reason):
    def fitted(*_):
        for line in said:
            component_reml.warnings.warn(line, stacklevel=1)
        return SimpleNamespace(converged=converged), dict(zip((Level.TASK, Level.GENERATION, Level.GRADER), parts, strict=True))

    monkeypatch.setattr(component_reml, "_fit", fitted)
    fit = reml(*long(normal(1, 1.0, 1.0, 1.0)))
    assert reason in fit.failed
    assert (fit.components is None) == bool(reason)
    assert fit.warnings == said


def test_an_error_of_the_fit_is_a_failure(monkeypatch):
    def broken(*_):
        raise np.linalg.LinAlgError("Singular matrix")

    monkeypatch.setattr(component_reml, "_fit", broken)
    assert "Singular matrix" in reml(*long(normal(1, 1.0, 1.0, 1.0))).failed


def test_what_it_needs():
    assert "one task" in reml(*long(normal(1, 1.0, 1.0, 1.0, (1, 3, 3)))).failed
    assert "only the sum" in reml(*long(normal(1, 1.0, 1.0, 1.0, (5, 1, 1)))).failed
