"""A study of paid calls through a server full of faults, killed with -9: a tenth of what `python -m perf.paid` does."""

from __future__ import annotations

import pytest

from perf.paid import study

pytestmark = pytest.mark.prefect


def test_no_answer_is_lost_paid_twice_or_mistaken(environment, tmp_path) -> None:
    result = study(tmp_path, calls=480, kills=3, seed=1, replicates=8, concurrency=16, environment=environment)
    assert result.cells == 480
    assert (result.wrong_cells, result.unmeasured, result.journalled_twice) == (0, 0, 0)
    assert result.repeated <= result.in_flight
    # The faults are real: without them this would show nothing.
    assert result.faults > 40
    assert result.sendings >= 480 + result.faults
    assert result.cost == pytest.approx(result.server_cost, abs=1e-9)
    assert result.lost_cost < 0.1 * result.server_cost
