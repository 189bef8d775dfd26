"""Waits between attempts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from evalnoise.providers.retry_after import retry_after
from evalnoise.sending.retry import backoff

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:15 GMT"}, 10.0),
        ({"retry-after": "Fri, 02 Jan 2026 03:04:15"}, 10.0),
        ({"retry-after": "Fri, 02 Jan 2025 03:04:15 GMT"}, 0.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "in a while"}, None),
    ],
)
def test_retry_after(headers, seconds):
    assert retry_after(headers, now=NOW) == seconds


def test_the_wait_doubles_up_to_its_limit_and_is_spread():
    assert [backoff(n, None, first=0.5, draw=0.0) for n in (1, 2, 3, 4)] == [0.25, 0.5, 1.0, 2.0]
    assert backoff(1, None, first=0.5, draw=0.5) == 0.375
    assert backoff(10_000, None, first=0.5, draw=0.0) == 15.0


def test_what_the_server_says_is_waited_for_whole():
    assert backoff(1, 60.0, first=0.5, draw=0.0) == 60.0
    assert backoff(1, 60.0, first=0.5, draw=0.5) == 63.0
    assert backoff(1, 301.0, first=0.5, draw=0.0) is None
