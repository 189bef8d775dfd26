"""What servers say of their limits, in the forms that they use, and in forms that nobody can mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalnoise.sending.rate_headers import Allowance, allowances, number, seconds_until

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1s", 1.0),
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h2m3.5s", 3723.5),
        ("8.64s", 8.64),
        ("120", 120.0),
        ("0", 0.0),
        ("0s", 0.0),
        ("250us", 0.00025),
        ("2026-01-02T03:04:15Z", 10.0),
        ("2026-01-02T04:04:06+01:00", 1.0),
        ("2026-01-02T03:04:00Z", 0.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-1s", None),
        ("1s 2s", None),
        ("1s-", None),
        ("nan", None),
        ("inf", None),
        ("1e9", None),
        ("9999999h", None),
        ("86401", None),
        ("2026-01-02T03:04:15", None),
        ("9999-12-31T23:59:59Z", None),
        ("1m" * 200, None),
        ("\u0661s", None),
    ],
)
def test_forms_of_time(text, seconds) -> None:
    assert seconds_until(text, now=NOW) == seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0.0), ("149984", 149984.0), ("1.5", 1.5), ("-1", None), ("", None), ("1_000", None), (" 1", None), ("9" * 400, None)],
)
def test_forms_of_numbers(text, value) -> None:
    assert number(text) == value


def test_the_way_of_openai() -> None:
    headers = {
        "x-ratelimit-limit-requests": "500",
        "x-ratelimit-remaining-requests": "499",
        "x-ratelimit-reset-requests": "120ms",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0s",
        "x-ratelimit-limit-tokens": "garbage",
    }
    assert allowances(headers, now=NOW) == {"requests": Allowance(499, 0.12, 500), "tokens": Allowance(0, 360, None)}


def test_the_way_of_anthropic() -> None:
    headers = {}
    for kind, remaining in (("requests", "3"), ("tokens", "70000"), ("input-tokens", "50000"), ("output-tokens", "20000")):
        headers[f"anthropic-ratelimit-{kind}-limit"] = "80000"
        headers[f"anthropic-ratelimit-{kind}-remaining"] = remaining
        headers[f"anthropic-ratelimit-{kind}-reset"] = "2026-01-02T03:05:05Z"
    found = allowances(headers, now=NOW)
    assert list(found) == ["requests", "tokens", "input-tokens", "output-tokens"]
    assert found["input-tokens"] == Allowance(50_000, 60.0, 80_000)


def test_a_limit_below_what_is_left_is_not_believed() -> None:
    headers = {"x-ratelimit-limit-requests": "5", "x-ratelimit-remaining-requests": "9", "x-ratelimit-reset-requests": "1s"}
    assert allowances(headers, now=NOW) == {"requests": Allowance(9, 1.0, None)}


@given(st.text(max_size=80), st.text(max_size=80))
def test_no_header_raises_or_gives_a_negative_number(remaining, reset) -> None:
    headers = {"x-ratelimit-remaining-tokens": remaining, "x-ratelimit-reset-tokens": reset}
    for found in allowances(headers, now=NOW).values():
        assert found.remaining >= 0
        assert 0 <= found.reset <= 86_400
