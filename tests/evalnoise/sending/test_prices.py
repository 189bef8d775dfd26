"""Prices: how a model is found in a table, what a call costs, and what nobody knows."""

from __future__ import annotations

import hashlib
from datetime import date

import pytest

from evalnoise.sending.prices import FREE, Price, PriceTable, list_prices, max_output, price_of, price_table
from schemas.errors import StudyError
from schemas.provider import AnthropicProvider, OpenAIProvider, OracleJudge, OracleProvider, RecordingProvider
from schemas.records import Response, ResponseClass

TABLE = b"""
date = 2026-01-02
currency = "USD"
[[model]]
provider = "openai"
names = ["m", "m-mini"]
input = 2.0
cached_input = 0.5
output = 8.0
[[model]]
provider = "anthropic"
names = ["m"]
input = 3.0
cached_input = 0.3
cache_write = 3.75
output = 15.0
"""
OPENAI, ANTHROPIC = OpenAIProvider(name="openai"), AnthropicProvider(name="anthropic")


def used(input_tokens, output_tokens, **counts) -> Response:
    return Response("x", ResponseClass.COMPLETE, input_tokens=input_tokens, output_tokens=output_tokens, **counts)


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("m", 8.0),
        ("m-mini", 8.0),
        ("m-2025-08-07", 8.0),
        ("m-mini-20250807", 8.0),
        ("m-large", None),
        ("m-2025", None),
        ("m-2025-08-07-preview", None),
        ("M", None),
        ("other-20250807", None),
        ("", None),
    ],
)
def test_a_model_is_found_by_its_name_or_by_its_name_without_a_date(model, output) -> None:
    price = PriceTable(TABLE, "t").price(OPENAI, model)
    assert (price and price.output) == output


def test_the_same_name_at_another_provider_has_its_own_price() -> None:
    assert PriceTable(TABLE, "t").price(ANTHROPIC, "m") == Price(
        3.0, 15.0, 0.3, 3.75, f"2026-01-02 {hashlib.sha256(TABLE).hexdigest()[:12]}"
    )


def test_the_providers_own_options_come_first() -> None:
    spec = OpenAIProvider(name="openai", input_usd_per_million=1.0, output_usd_per_million=2.0)
    table = PriceTable(TABLE, "t")
    assert price_of(spec, "m", table) == Price(1.0, 2.0, None, None, "study")
    half = OpenAIProvider(name="openai", input_usd_per_million=1.0)
    assert price_of(half, "unlisted", table) is None
    assert price_of(OracleProvider(name="oracle"), "m", table) is FREE
    assert price_of(OracleJudge(name="oracle"), "m", table) is FREE
    assert price_of(RecordingProvider(name="recording", path="x"), "m", table) is None


def test_list_prices_hold_at_the_providers_own_address_and_tier_alone() -> None:
    def found(**options) -> bool:
        return list_prices().price(OpenAIProvider(name="openai", **options), "gpt-4o-mini-2024-07-18") is not None

    assert found()
    assert found(base_url="https://api.openai.com/v1")
    assert found(extra={"service_tier": "default"})
    assert not found(base_url="http://127.0.0.1:8080/v1")
    assert not found(base_url="https://api.openai.com.example.org/v1")
    assert not found(extra={"service_tier": "priority"})
    assert not found(extra={"speed": "fast"})
    assert not found(extra={"cache_control": {"type": "ephemeral", "ttl": "1h"}})
    assert found(extra={"cache_control": {"type": "ephemeral", "ttl": "5m"}})
    own = PriceTable(TABLE, "t")
    assert own.price(OpenAIProvider(name="openai", base_url="http://127.0.0.1:8080/v1"), "m") is not None


def test_the_shipped_table_reads_and_has_a_date() -> None:
    assert isinstance(list_prices().date, date)
    haiku = list_prices().price(ANTHROPIC, "claude-3-5-haiku-20241022")
    assert haiku is not None
    assert (haiku.input, haiku.cached_input, haiku.cache_write, haiku.output) == (0.8, 0.08, 1.0, 4.0)


PRICE = Price(3.0, 15.0, 0.3, 3.75)


@pytest.mark.parametrize(
    ("price", "response", "cost"),
    [
        (PRICE, used(1_000_000, 500_000), 10.5),
        (PRICE, used(0, 0), 0.0),
        (PRICE, used(None, 1), None),
        (PRICE, used(1, None), None),
        # Reasoning is part of the output already.
        (PRICE, used(0, 1_000_000, reasoning_tokens=900_000), 15.0),
        (PRICE, used(1_000_000, 0, cached_tokens=400_000, cache_write_tokens=200_000), 0.4 * 3 + 0.4 * 0.3 + 0.2 * 3.75),
        (PRICE, used(1_000_000, 0, cached_tokens=0), 3.0),
        (PRICE, used(10, 0, cached_tokens=11), None),
        (Price(3.0, 15.0), used(10, 0, cached_tokens=1), None),
        (Price(3.0, 15.0, 0.3), used(10, 0, cache_write_tokens=1), None),
        (Price(0.0, 0.0), used(10, 10), 0.0),
    ],
)
def test_what_a_call_costs(price, response, cost) -> None:
    assert price.cost(response) == (None if cost is None else pytest.approx(cost))


def test_what_a_call_can_cost_at_most() -> None:
    assert Price(2.0, 8.0).most(1000, 500) == pytest.approx((1000 * 2 + 500 * 8) / 1e6)
    # Anthropic's cache writes are dearer than plain input.
    assert PRICE.most(1000, 0) == pytest.approx(1000 * 3.75 / 1e6)
    assert PRICE.most(1000, None) is None
    assert FREE.most(1000, None) == 0.0


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 7}, 7),
        ({"max_output_tokens": 9}, 9),
        ({"max_tokens": 5, "max_completion_tokens": 7}, 7),
        ({"max_completion_tokens": -1}, None),
        ({"max_tokens": 0}, None),
        ({"max_tokens": 5, "tools": [{"type": "function", "function": {}}, {"name": "mine", "input_schema": {}}]}, 5),
        ({"max_tokens": 5, "tools": [{"type": "web_search_20250305", "name": "web_search"}]}, None),
        ({"max_tokens": 5, "web_search_options": {"search_context_size": "high"}}, None),
        ({"max_tokens": True}, None),
        ({"max_tokens": "5"}, None),
        ({}, None),
    ],
)
def test_the_limit_of_output(body, limit) -> None:
    assert max_output(body) == limit


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"date = ",
        b"\xff\xfe",
        TABLE.replace(b'"USD"', b'"EUR"'),
        TABLE.replace(b"2026-01-02", b'"soon"'),
        TABLE.replace(b"input = 2.0", b"input = -2.0"),
        TABLE.replace(b"input = 2.0", b"input = nan"),
        TABLE.replace(b"output = 8.0\n", b""),
        TABLE.replace(b"output = 8.0", b"outptu = 8.0"),
        TABLE.replace(b'"m", "m-mini"', b'"m", "m"'),
    ],
)
def test_a_file_that_is_no_table_is_refused_by_name(tmp_path, content) -> None:
    path = tmp_path / "prices.toml"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=r"prices\.toml: expected a table of prices"):
        price_table(str(path))


def test_a_file_that_is_not_there_is_refused(tmp_path) -> None:
    with pytest.raises(StudyError, match="No such file"):
        price_table(str(tmp_path / "none.toml"))
