"""Distinct rows are NumPy's, in the same order, for counts and for other numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.stats.patterns import distinct_rows


def check(rows):
    patterns, inverse, counts = distinct_rows(rows)
    expected, of_row, numbers = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
    assert (patterns == expected).all()
    assert (inverse == of_row.reshape(-1)).all()
    assert (counts == numbers).all()
    assert patterns.dtype == rows.dtype


TABLES = st.integers(1, 4).flatmap(
    lambda m: st.lists(st.lists(st.integers(-5, 5), min_size=m, max_size=m), min_size=1, max_size=40)
)


@given(TABLES, st.sampled_from([1, 10**6, 2**40]))
def test_whole_numbers(rows, factor):
    check(np.array(rows, dtype=np.int64) * factor)


@given(TABLES, st.sampled_from([1.0, 1 / 3, 1e300]))
def test_other_numbers(rows, factor):
    check(np.array(rows, dtype=np.float64) * factor)


def test_more_columns_than_one_key_has_room_for():
    rows = np.random.default_rng(1).integers(0, 1_000, size=(300, 12))
    rows[150:] = rows[:150]
    check(rows)
    check(rows.astype(float))


@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_no_row_has_no_pattern(dtype):
    patterns, inverse, counts = distinct_rows(np.empty((0, 2), dtype=dtype))
    assert patterns.shape == (0, 2)
    assert (len(inverse), len(counts)) == (0, 0)
