"""The view task_noise gives the numbers of `evalnoise.stats.influence`."""

from __future__ import annotations

import duckdb
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalnoise.stats.influence import concentration, influence
from schemas.views import load_views

COUNTS = st.lists(st.integers(0, 8).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=12)
EQUAL = st.lists(st.integers(0, 7).map(lambda k: (k, 7)), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def connection():
    made = duckdb.connect()
    made.execute(
        "create table task_counts (study varchar, protocol varchar, benchmark varchar, stack varchar, condition varchar, "
        "task_id varchar, position bigint, passes bigint, runs bigint, unmeasured bigint)"
    )
    made.execute(next(view.sql for view in load_views() if view.name == "task_noise"))
    return made


def rows(connection, counts):
    """What the view says of these counts, beside another condition that must not mix with them."""
    connection.execute("delete from task_counts")
    for condition, some in (("live", counts), ("other", [(3, 6)] * 3)):
        values = [("s", "p", "b", "a", condition, f"t/{i}", i, k, n, 0) for i, (k, n) in enumerate(some)]
        connection.executemany("insert into task_counts values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)
    return connection.execute(
        "select position, s2, share, carried, w_without, z from task_noise where condition = 'live' order by position"
    ).fetchall()


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(counts=st.one_of(COUNTS, EQUAL))
def test_the_view_is_numpy(connection, counts):
    found = rows(connection, counts)
    k, n = (np.array(column) for column in zip(*counts, strict=True))
    expected, carriers = influence(k, n), concentration(k, n)
    assert [row[0] for row in found] == expected.tasks.tolist()
    for column, values in ((1, expected.s2), (2, expected.share), (4, expected.without), (5, expected.z)):
        seen = [row[column] for row in found]
        if values is None:
            assert all(value is None for value in seen)
        else:
            assert seen == pytest.approx(values.tolist(), abs=1e-12 if column != 5 else 1e-9)
    if carriers.effective is not None:
        by_size = sorted(found, key=lambda row: row[3])
        assert by_size[-1][3] == pytest.approx(1)
        half = [row[0] for row in by_size if row[3] - row[2] < 0.5 - 1e-9]
        assert half == carriers.half.tolist()


def test_balanced_counts_are_exact(connection):
    counts = [(0, 20), (3, 20), (10, 20), (20, 20), (7, 20)]
    found = rows(connection, counts)
    expected = influence(*(np.array(column) for column in zip(*counts, strict=True)))
    assert [row[4] for row in found] == expected.without.tolist()
    assert [row[2] for row in found] == expected.share.tolist()
