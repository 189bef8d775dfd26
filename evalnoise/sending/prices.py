"""Prices: what a million tokens cost, from a dated table, and what a call costs or can cost at most."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from datetime import date
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import Field, ValidationError

from schemas.errors import StudyError
from schemas.model import Model
from schemas.provider import AnthropicProvider, OpenAIProvider, OracleJudge, OracleProvider, PluginProvider
from schemas.records import Response

_MILLION: Final = 1_000_000
_DATED: Final = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8})", re.ASCII)
"""What a provider appends to the name of a model for one release of it."""
_OWN_HOSTS: Final = {"openai": "api.openai.com", "anthropic": "api.anthropic.com"}
_LIST_TIERS: Final = (None, "default", "standard", "standard_only")
"""Values of the body's `service_tier` at which list prices hold."""
_SURCHARGED: Final = ("inference_geo", "speed")
"""Fields of the body that raise a price, as the tiers do."""
_UNBOUNDED: Final = ("web_search_options", "mcp_servers", "plugins", "prompt")
"""Fields by which a server adds to what was sent, or answers in several rounds."""
_LIMITS: Final = ("max_completion_tokens", "max_output_tokens", "max_tokens")

Dollars = Annotated[float, Field(ge=0, allow_inf_nan=False)]


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens of each kind."""

    input: float
    output: float
    """Reasoning counts as output."""
    cached_input: float | None = None
    """Read from the provider's prompt cache; None: unknown."""
    cache_write: float | None = None
    """Written to it; None: unknown."""
    source: str = "study"
    """Where it is from: ``study``, or the date and digest of a table."""

    def cost(self, response: Response) -> float | None:
        """US dollars for a response; None where a count or the price of a kind that was used is unknown."""
        if response.input_tokens is None or response.output_tokens is None:
            return None
        total, plain = response.output_tokens * self.output, response.input_tokens
        parts = ((response.cached_tokens, self.cached_input), (response.cache_write_tokens, self.cache_write))
        for tokens, price in parts:
            if not tokens:
                continue
            if price is None:
                return None
            total += tokens * price
            plain -= tokens
        return None if plain < 0 else (total + plain * self.input) / _MILLION

    def most(self, size: int, max_output: int | None) -> float | None:
        """US dollars that a request of so many bytes can cost, for a token is at least a byte; None: its output has no limit."""
        if max_output is None:
            return None if self.output else self.most(size, 0)
        return (size * max(self.input, self.cache_write or 0.0) + max_output * self.output) / _MILLION


FREE: Final = Price(0.0, 0.0, 0.0, 0.0, "free")
"""Of simulated models."""


def max_output(body: Any) -> int | None:
    """The most output tokens that a request's body allows; None: it names no limit, or lets the server work with tools of its own.

    What such tools find is billed as input, in as many rounds as the model likes.
    """
    tools = body.get("tools")
    own = isinstance(tools, list) and any(not _of_client(tool) for tool in tools)
    if own or any(body.get(name) for name in _UNBOUNDED):
        return None
    # Not above 0, it stands for no limit with some servers.
    named = [value for name in _LIMITS if isinstance(value := body.get(name), int) and not isinstance(value, bool) and value > 0]
    return max(named) if named else None


def _of_client(tool: Any) -> bool:
    """Whether a tool is one that the server only describes to the model."""
    return isinstance(tool, dict) and tool.get("type", "custom") in ("function", "custom")


class _ModelPrices(Model):
    provider: str = Field(min_length=1)
    names: tuple[str, ...] = Field(min_length=1, strict=False)
    input: Dollars
    cached_input: Dollars | None = None
    cache_write: Dollars | None = None
    output: Dollars


class _Table(Model):
    date: date
    currency: Literal["USD"]
    note: str = ""
    model: tuple[_ModelPrices, ...] = Field(strict=False)


class PriceTable:
    """A file of prices."""

    def __init__(self, content: bytes, where: str, *, own_hosts_only: bool = False) -> None:
        """Read it.

        Args:
            content: TOML.
            where: The file's name, for messages.
            own_hosts_only: Whether it holds at the providers' own addresses alone, as list prices do.

        Raises:
            StudyError: It is not a table of prices.
        """
        try:
            table = _Table.model_validate(tomllib.loads(content.decode("utf-8")))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise _not_a_table(where, f"{place}: {first['msg']}") from None
        except ValueError as error:
            raise _not_a_table(where, str(error)) from None
        self.date = table.date
        self.sha256 = hashlib.sha256(content).hexdigest()
        self.source = f"{table.date.isoformat()} {self.sha256[:12]}"
        self._own_hosts_only = own_hosts_only
        self._prices: dict[tuple[str, str], Price] = {}
        for entry in table.model:
            price = Price(entry.input, entry.output, entry.cached_input, entry.cache_write, self.source)
            for name in entry.names:
                if (entry.provider, name) in self._prices:
                    raise _not_a_table(where, f"two prices for {name} of {entry.provider}")
                self._prices[entry.provider, name] = price

    def price(self, spec: OpenAIProvider | AnthropicProvider | PluginProvider, model: str) -> Price | None:
        """The price of a model by its exact name, or by its name without the date of a release; None: not in the table."""
        if not isinstance(spec, PluginProvider):
            if spec.extra.get("service_tier") not in _LIST_TIERS or any(spec.extra.get(name) for name in _SURCHARGED):
                return None
            if '"ttl": "1h"' in json.dumps(spec.extra):  # what is to stay in the cache for longer is dearer to write
                return None
            if self._own_hosts_only and not _own(spec):
                return None
        exact = self._prices.get((spec.name, model))
        dated = _DATED.search(model)
        if exact is None and dated and dated.end() == len(model):
            return self._prices.get((spec.name, model[: dated.start()]))
        return exact


def _own(spec: OpenAIProvider | AnthropicProvider) -> bool:
    return spec.base_url is None or urlsplit(spec.base_url).hostname == _OWN_HOSTS[spec.name]


def _not_a_table(where: str, found: str) -> StudyError:
    return StudyError(
        where,
        expected="a table of prices: TOML with date, currency and [[model]] entries",
        found=found,
        remedy="docs/guide/costs.md shows one.",
    )


@cache
def list_prices() -> PriceTable:
    """The table that comes with evalnoise."""
    return PriceTable((resources.files("evalnoise") / "prices.toml").read_bytes(), "evalnoise/prices.toml", own_hosts_only=True)


def price_table(path: str | None) -> PriceTable:
    """The table that a study names, else the list prices. Raises StudyError."""
    if path is None:
        return list_prices()
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        found = error.strerror or type(error).__name__
        raise StudyError("prices", expected=f"a readable file {path}", found=found, remedy="Check the path.") from None
    return PriceTable(content, path)


def price_of(spec: object, model: str, table: PriceTable) -> Price | None:
    """What a provider's model costs: by the provider's options, else by the table; None: unknown."""
    if isinstance(spec, OracleProvider | OracleJudge):
        return FREE
    if isinstance(spec, PluginProvider):
        return table.price(spec, model)
    if not isinstance(spec, OpenAIProvider | AnthropicProvider):
        return None
    if spec.input_usd_per_million is not None and spec.output_usd_per_million is not None:
        return Price(
            spec.input_usd_per_million,
            spec.output_usd_per_million,
            spec.cached_input_usd_per_million,
            spec.cache_write_usd_per_million,
        )
    return table.price(spec, model)
