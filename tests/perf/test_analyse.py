"""The study that perf.analyse measures, at a small size: its analysis is that of the cells which were sealed."""

from __future__ import annotations

import numpy as np
import pytest

from evalnoise.stats.variance import within_task_variance
from perf.analyse import CONDITIONS, REPLICATES, build, measure
from tests.support.stages import rows

TASKS = 30


def test_what_is_measured_is_the_analysis_of_the_sealed_cells(tmp_path):
    build(tmp_path, TASKS, calls=True)
    found = measure(tmp_path)
    assert found["rows"]["contrasts"] >= CONDITIONS
    counts = rows(
        tmp_path / "store",
        "select condition, list(passes order by position), list(runs order by position) from task_counts group by 1",
    )
    assert len(counts) == CONDITIONS
    for condition, passes, runs in counts:
        assert runs == [REPLICATES] * TASKS
        ((w,),) = rows(tmp_path / "store", f"select w from noise_floor where condition = '{condition}'")
        assert w == pytest.approx(within_task_variance(np.array(passes), np.array(runs)).w, abs=1e-12)
