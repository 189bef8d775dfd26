"""Which headers of an answer are kept, and what they say of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

KEPT_PREFIXES: Final = ("x-ratelimit-", "anthropic-ratelimit-", "ratelimit")
"""Headers about rates, by how their names begin."""
REQUEST_IDS: Final = ("x-request-id", "request-id", "apim-request-id", "x-ms-request-id", "x-generation-id", "x-amzn-requestid")
"""Headers that hold the server's id of the exchange, the first that is there."""
CACHE_HEADERS: Final = (
    "cache-status", "x-cache", "x-cache-status", "cf-cache-status", "cf-aig-cache-status", "helicone-cache",
    "x-portkey-cache-status", "x-openrouter-cache-status",
)  # fmt: skip
"""Headers in which caches and gateways say whether they answered from what they had stored: by the word `hit`."""
CACHE_KEY: Final = "x-litellm-cache-key"
"""LiteLLM sends this one with stored answers only."""
CACHE_FIELDS: Final = ("cached", "from_cache", "cache_hit")
"""Fields of a body that say so, if they are true."""
KEPT: Final = frozenset({
    *REQUEST_IDS, *CACHE_HEADERS, CACHE_KEY, "retry-after", "retry-after-ms", "x-should-retry", "age", "date", "server", "via",
    "cf-ray", "openai-version", "openai-processing-ms", "openai-model", "x-ms-region", "x-litellm-model-id", "x-litellm-version",
    "x-inference-provider", "x-served-by",
})  # fmt: skip
"""All others are dropped: cookies, names of organisations, and what nobody has asked for."""

_LONGEST: Final = 500
_MOST: Final = 64
_HIT: Final = re.compile(r"(?<![a-z])hit(?![a-z])")


def kept(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers that are kept, by lower-case name, in order of their names; each cut to a stated length."""
    lowered = {name.lower(): value[:_LONGEST] for name, value in headers.items()}
    wanted = sorted(name for name in lowered if name in KEPT or name.startswith(KEPT_PREFIXES))
    return {name: lowered[name] for name in wanted[:_MOST]}


def request_id(headers: Mapping[str, str]) -> str:
    """The server's id of the exchange, or empty. Of headers as from `kept`."""
    return next((headers[name] for name in REQUEST_IDS if headers.get(name)), "")


def from_cache(headers: Mapping[str, str], body: Mapping[str, Any]) -> bool:
    """Whether the server says that it did not compute this answer now. A cached prompt is another thing, and is no sign."""
    said = any(_HIT.search(headers.get(name, "").lower()) for name in CACHE_HEADERS)
    return said or bool(headers.get(CACHE_KEY)) or any(body.get(name) is True for name in CACHE_FIELDS)
