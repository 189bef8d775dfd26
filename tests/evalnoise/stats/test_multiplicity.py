"""Holm and Benjamini-Hochberg against statsmodels; undefined p-values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from evalnoise.stats.multiplicity import Adjustment, adjusted, adjusted_array


@settings(max_examples=20, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_as_statsmodels_has_it(p):
    for method, theirs in ((Adjustment.HOLM, "holm"), (Adjustment.BENJAMINI_HOCHBERG, "fdr_bh")):
        assert adjusted_array(np.array(p), method=method) == pytest.approx(multipletests(p, method=theirs)[1], abs=1e-12)


def test_by_hand():
    assert adjusted([0.01, 0.04, 0.03]).p_adjusted == pytest.approx((0.03, 0.06, 0.06))
    found = adjusted([0.01, 0.04, 0.03], method=Adjustment.BENJAMINI_HOCHBERG)
    assert found.p_adjusted == pytest.approx((0.03, 0.04, 0.04))


def test_undefined_ones_are_left_out_and_counted():
    found = adjusted([None, 0.02, None, 0.5])
    assert found.p_adjusted == (None, 0.04, None, 0.5)
    assert (found.family, found.left_out, found.method) == (2, 2, "holm")
    assert adjusted([]).p_adjusted == ()
    assert adjusted([None]).p_adjusted == (None,)


@pytest.mark.parametrize("p", [[1.5], [-0.1], [float("nan")]])
def test_what_is_no_p_value(p):
    with pytest.raises(ValueError, match="from 0 to 1"):
        adjusted(p)
