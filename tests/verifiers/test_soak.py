"""A small part of the long run: what grows is bounded, and nothing is left."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from perf.soak import ABNORMAL_EVERY, soak

pytestmark = [pytest.mark.docker, pytest.mark.usefixtures("docker_engine")]


@pytest.mark.parametrize(("candidates", "recycled"), [(900, True), (1500, False)])
def test_many_candidates(candidates: int, recycled: bool) -> None:
    # In a process of its own: what a process has that ran thousands of tests grows and shrinks by itself.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
        done = alone.submit(soak, candidates, recycled=recycled).result()
    assert done.wrong == 0
    assert done.left == {"descriptors": 0, "containers": 0, "volumes": 0, "processes": 0}
    if recycled:
        assert done.containers >= candidates // ABNORMAL_EVERY, "replaced after each abnormal end"
    else:
        assert done.containers == 1
    assert done.late.descriptors <= done.early.descriptors
    # A thousand candidates of the one container lie between the two, so 8 KB lost with each would show; less is for `perf.soak`,
    # with 20,000.
    assert done.late.host - done.early.host < 8 * 2**20
    assert done.late.container - done.early.container < 2 * 2**20
