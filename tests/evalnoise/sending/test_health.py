"""How failures are kept from multiplying: the allowance of repeats, the single probe, fewer calls at once, and the way back."""

from __future__ import annotations

import math

import pytest

from evalnoise.providers.base import Failure, Kind
from evalnoise.sending.health import FLOOR, SHARE, Health

BUSY = Failure(Kind.OVERLOADED, "busy")
BROKEN = Failure(Kind.TRANSIENT, "broken")


def health(concurrency: int = 64) -> Health:
    return Health(concurrency=concurrency, first_wait=1.0, draw=lambda: 0.5)


def fail(one: Health, count: int, failure: Failure = BROKEN, *, again: bool = False, now: float = 0.0) -> None:
    for _ in range(count):
        one.failed(one.start(again=again, now=now), failure, now=now)


def repeats_allowed(one: Health) -> int:
    found = 0
    while one.wait(again=True, in_flight=0, now=0.0) <= 0 and not one.start(again=True, now=0.0).probe:
        found += 1
    return found


def test_repeats_are_a_share_of_first_sendings_and_a_small_floor() -> None:
    one = health()
    assert repeats_allowed(one) == FLOOR
    one = health()
    for _ in range(100):
        one.start(again=False, now=0.0)
    assert FLOOR + 100 * SHARE - 1 <= repeats_allowed(one) <= FLOOR + 100 * SHARE


def test_a_storm_does_not_multiply() -> None:
    """64 workers whose every sending fails: hard input 31. With the allowance used up they probe, one at a time."""
    one, sent, now = health(), 0, 0.0
    waiting = [False] * 64
    for index in range(64):
        fail(one, 1)
        waiting[index], sent = True, sent + 1
    while now < 600:
        if (wait := one.wait(again=True, in_flight=0, now=now)) > 0:
            now += wait
            continue
        start = one.start(again=True, now=now)
        if start.probe:
            assert one.wait(again=True, in_flight=1, now=now) == math.inf
            assert one.wait(again=False, in_flight=1, now=now) == math.inf
        one.failed(start, BROKEN, now=now)
        sent += 1
    first_repeats = FLOOR + 50 * SHARE
    assert sent <= 64 + first_repeats + 64 * SHARE + 600 / 22.5 + 6
    assert one.failing_since == 0.0


def test_after_an_answered_probe_the_others_follow() -> None:
    one = health()
    fail(one, 12)
    while not (start := one.start(again=True, now=0.0)).probe:
        one.failed(start, BROKEN, now=0.0)
    one.failed(start, BROKEN, now=0.0)
    assert one.wait(again=True, in_flight=0, now=0.0) == 0.75
    assert one.wait(again=False, in_flight=0, now=0.0) == 0.75
    probe = one.start(again=True, now=0.75)
    assert probe.probe
    one.answered(probe)
    assert one.failing_since is None
    assert one.wait(again=False, in_flight=0, now=0.75) == 0
    starts = [one.start(again=True, now=0.75) for _ in range(2)]
    assert [start.probe for start in starts] == [False, False]


def test_a_server_that_fails_now_and_then_is_not_slowed_down() -> None:
    """A third of the sendings fail; each repeat that is answered costs nothing."""
    one, failures = health(), 0
    for number in range(3000):
        start = one.start(again=False, now=0.0)
        while number % 3 == 0 and not start.again:
            one.failed(start, BROKEN, now=0.0)
            assert one.wait(again=True, in_flight=0, now=0.0) == 0
            start = one.start(again=True, now=0.0)
            failures += 1
        assert not start.probe
        one.answered(start)
    assert failures == 1000


def test_the_floor_comes_back_with_time_but_not_in_a_storm() -> None:
    one = health()
    one.answered(one.start(again=False, now=0.0))
    repeats_allowed(one)
    assert one.wait(again=True, in_flight=0, now=0.0) == math.inf  # a probe is in flight
    other = health()
    fail(other, 20)
    while not other.start(again=True, now=0.0).probe:
        pass
    assert other.wait(again=True, in_flight=0, now=10_000.0) == math.inf


def test_an_overload_halves_the_calls_at_once_once_for_those_in_flight_together() -> None:
    one = health()
    together = [one.start(again=False, now=0.0) for _ in range(64)]
    for start in together:
        one.failed(start, BUSY, now=1.0)
    assert (one.limit, one.cuts) == (32, 1)
    one.failed(one.start(again=False, now=2.0), BUSY, now=3.0)
    assert one.limit == 16
    assert one.wait(again=False, in_flight=16, now=4.0) == math.inf
    assert one.wait(again=False, in_flight=15, now=4.0) == 0
    for moment in range(10, 30):
        one.failed(one.start(again=False, now=moment), BUSY, now=moment)
    assert one.limit == 1


def test_the_way_back_is_quick_to_half_and_slow_after_it() -> None:
    one = health()
    for moment in range(4):
        one.failed(one.start(again=False, now=moment), BUSY, now=moment)
    assert one.limit == 4
    answers = 0
    while one.limit < 32:
        one.answered(one.start(again=False, now=5.0))
        answers += 1
    assert answers == 28
    while one.limit < 64:
        one.answered(one.start(again=False, now=5.0))
        answers += 1
    assert 1400 < answers < 1700
    one.answered(one.start(again=False, now=5.0))
    assert one.limit == 64


def test_a_wait_that_one_sending_is_told_holds_for_all_and_ends_spread_out() -> None:
    one = health()
    one.failed(one.start(again=False, now=0.0), Failure(Kind.OVERLOADED, "busy", wait=20.0), now=0.0)
    assert one.wait(again=False, in_flight=0, now=0.0) == pytest.approx(21.0)
    assert one.wait(again=True, in_flight=0, now=20.0) == pytest.approx(1.0)
    one.start(again=False, now=21.0)
    assert one.wait(again=False, in_flight=0, now=21.0) == pytest.approx(0.5 / 32)
    one.answered(one.start(again=False, now=22.0))
    one.start(again=False, now=23.0)
    assert one.wait(again=False, in_flight=0, now=23.0) == 0


def test_a_wait_of_an_hour_is_not_believed() -> None:
    one = health()
    one.failed(one.start(again=False, now=0.0), Failure(Kind.OVERLOADED, "busy", wait=3600.0), now=0.0)
    assert one.wait(again=False, in_flight=0, now=0.0) == 0


def test_a_sending_that_was_not_made_costs_nothing() -> None:
    one = health()
    for _ in range(100):
        one.drop(one.start(again=True, now=0.0))
    assert repeats_allowed(one) == FLOOR
