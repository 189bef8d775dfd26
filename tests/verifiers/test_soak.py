"""A small part of the long run: what grows is bounded, and nothing is left."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from perf.soak import ABNORMAL_EVERY, soak

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]

CANDIDATES = 1500


@pytest.mark.parametrize("recycled", [True, False])
def test_many_candidates(recycled: bool) -> None:
    # In a process of its own: what a process has that ran thousands of tests grows and shrinks by itself.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        done = alone.submit(soak, CANDIDATES, recycled=recycled).result()
    assert done.wrong == 0
    assert done.left == {"descriptors": 0, "containers": 0, "volumes": 0, "processes": 0}
    if recycled:
        assert done.containers >= CANDIDATES // ABNORMAL_EVERY, "replaced after each abnormal end"
    else:
        assert done.containers == 1
    assert done.late.descriptors <= done.early.descriptors
    # A thousand candidates lie between the two, so 8 KB lost with each would show; less is for `perf.soak`, with 20,000.
    assert done.late.host - done.early.host < 8 * 2**20
    assert done.late.container - done.early.container < 2 * 2**20
