"""The pace: no minute sees more than is allowed, estimates are put right, and headers are followed while they can be meant."""

from __future__ import annotations

import math
from bisect import bisect_left

import pytest

from evalnoise.sending.pace import Bucket, Load, Pacer

SMALL = Load(10.0, 10.0)


def moments(pacer: Pacer, load: Load, count: int) -> list[float]:
    """When so many sendings go out, each as soon as it may."""
    now, found = 0.0, []
    for _ in range(count):
        while (wait := pacer.wait(load, now=now)) > 0:
            now += wait
        pacer.take(load)
        found.append(now)
    return found


@pytest.mark.parametrize("per_minute", [1, 7, 60, 601, 5000])
def test_no_minute_sees_more_requests_than_allowed_and_not_many_fewer(per_minute) -> None:
    times = moments(Pacer(requests_per_minute=per_minute), SMALL, 3 * per_minute + 1)
    assert times == sorted(times)
    for index, begun in enumerate(times):
        assert bisect_left(times, begun + 60 - 1e-6) - index <= per_minute, begun
    assert times[-1] <= 3 * 60 * 1.04 + 1


def test_no_minute_sees_more_tokens_than_allowed() -> None:
    times = moments(Pacer(tokens_per_minute=6000), Load(60.0, 40.0), 240)
    for index, begun in enumerate(times):
        within = sum(1 for time in times[index:] if time < begun + 60 - 1e-6)
        assert within * 100 <= 6000 + 100, begun  # the last one may leave a debt, which the next ones wait for
    assert 220 <= times[-1] <= 260


def test_a_load_that_never_fits_goes_out_alone_and_is_paid_off() -> None:
    pacer = Pacer(tokens_per_minute=600)
    assert moments(pacer, Load(1200.0, 0.0), 2)[1] == pytest.approx(1200 / ((600 - 10 + 1) / 60))


def test_what_was_not_used_comes_back() -> None:
    pacer = Pacer(tokens_per_minute=6000)
    taken = pacer.take(Load(100.0, 3900.0))
    assert pacer.wait(SMALL, now=0.0) > 39
    pacer.correct(taken, Load(100.0, 50.0))
    assert pacer.wait(SMALL, now=0.0) < 1


def test_a_bucket_does_not_gather_more_than_a_second() -> None:
    bucket = Bucket(600, now=0.0)
    assert bucket.wait(1, now=1000.0) == 0
    for _ in range(10):
        bucket.take(1)
    assert bucket.wait(1, now=1000.0) > 0


def openai(remaining: int, reset: str, *, limit: int | None = None, kind: str = "requests") -> dict[str, str]:
    found = {f"x-ratelimit-remaining-{kind}": str(remaining), f"x-ratelimit-reset-{kind}": reset}
    return found if limit is None else found | {f"x-ratelimit-limit-{kind}": str(limit)}


def test_nothing_left_waits_for_the_refill_that_the_server_states() -> None:
    pacer = Pacer()
    pacer.hear(pacer.take(SMALL), openai(0, "50s", limit=100), now=0.0)
    assert pacer.wait(SMALL, now=0.0) == pytest.approx(0.5)
    assert pacer.wait(SMALL, now=0.5) == 0.0


def test_nothing_left_and_no_limit_named_waits_for_the_reset() -> None:
    pacer = Pacer()
    pacer.hear(pacer.take(SMALL), openai(0, "20s"), now=5.0)
    assert pacer.wait(SMALL, now=5.0) == 20.0
    assert pacer.wait(SMALL, now=25.0) == 0.0


def test_tokens_that_are_left_hold_a_large_request_back_and_not_a_small_one() -> None:
    pacer = Pacer()
    pacer.hear(pacer.take(SMALL), openai(500, "10s", limit=1000, kind="tokens"), now=0.0)
    assert pacer.wait(Load(100.0, 100.0), now=0.0) == 0.0
    assert pacer.wait(Load(400.0, 400.0), now=0.0) == pytest.approx(6.0)


def test_what_was_sent_meanwhile_counts_against_what_was_left() -> None:
    pacer = Pacer()
    first = pacer.take(SMALL)
    for _ in range(3):
        pacer.take(SMALL)
    pacer.hear(first, openai(3, "20s"), now=0.0)
    assert pacer.wait(SMALL, now=0.0) == 20.0


def test_an_older_answer_does_not_overrule_a_newer_one() -> None:
    pacer = Pacer()
    old, new = pacer.take(SMALL), pacer.take(SMALL)
    pacer.hear(new, openai(0, "20s"), now=0.0)
    pacer.hear(old, openai(1000, "20s"), now=0.1)
    assert pacer.wait(SMALL, now=0.1) == pytest.approx(19.9)


@pytest.mark.parametrize("reset", ["23h", "60m", "2099-01-01T00:00:00Z", "nan", "-5s", "", "99999999999999999999s"])
def test_no_header_holds_a_sending_back_for_more_than_a_minute(reset) -> None:
    pacer = Pacer()
    pacer.hear(pacer.take(SMALL), openai(0, reset), now=0.0)
    wait = pacer.wait(SMALL, now=0.0)
    assert 0 <= wait <= 60
    assert not math.isnan(wait)
    assert pacer.wait(SMALL, now=60.0) == 0.0


def test_a_count_that_cannot_be_meant_holds_nobody_back_for_more_than_a_minute() -> None:
    pacer = Pacer(tokens_per_minute=6000)
    taken = pacer.take(SMALL)
    pacer.correct(taken, Load(2.0**52, 0.0))
    assert 55 < pacer.wait(SMALL, now=0.0) < 65
