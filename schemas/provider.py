"""Where responses come from: the providers' part of a study."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from schemas.model import Model


class OracleProvider(Model):
    """A simulated model with known pass rates; no network, no cost."""

    name: Literal["oracle"]
    """The kind of provider."""
    seed: int = Field(default=0, ge=0)
    """Draws the tasks' pass probabilities and every response."""
    alpha: float = Field(default=0.3, gt=0, allow_inf_nan=False)
    """First parameter of the Beta distribution of the unstable tasks' pass probabilities."""
    beta: float = Field(default=0.2, gt=0, allow_inf_nan=False)
    """Second parameter of the same."""
    stable: float = Field(default=0.3, ge=0, le=1)
    """Share of tasks that always pass or always fail."""
    temperature: float = Field(default=0.7, ge=0, le=2)
    """At 0 the unstable tasks' share is divided by four, as hosted models tend to do; otherwise only recorded."""
    latency: float = Field(default=0.0, ge=0, le=60)
    """Seconds that each simulated call waits."""


class _HttpProvider(Model):
    temperature: float | None = Field(default=None, ge=0, le=2)
    """Sampling temperature; absent: not sent, the provider's default."""
    top_p: float | None = Field(default=None, gt=0, le=1)
    """Nucleus sampling; absent: not sent."""
    base_url: str | None = None
    """Another server that speaks the same protocol."""
    stream: bool = False
    """Ask for the answer in pieces as it is made; what comes of it is the same. Sent, so part of the request key."""
    connect_timeout: float = Field(default=15.0, gt=0, le=3600)
    """Seconds to make a connection. Not part of the protocol."""
    first_byte_timeout: float | None = Field(default=None, gt=0, le=3600)
    """Seconds from sending to the first byte of the answer; absent: `timeout`. Not part of the protocol."""
    timeout: float = Field(default=120.0, gt=0, le=3600)
    """Seconds for a whole call. Not part of the protocol."""
    max_retries: int = Field(default=4, ge=0, le=20)
    """Retries of a call that failed for reasons of transport or load."""
    input_usd_per_million: float | None = Field(default=None, ge=0)
    """Price of a million input tokens; with that of output tokens it takes the price table's place."""
    cached_input_usd_per_million: float | None = Field(default=None, ge=0)
    """Price of a million input tokens read from the provider's prompt cache; absent: the cost of such calls is unknown."""
    cache_write_usd_per_million: float | None = Field(default=None, ge=0)
    """Price of a million input tokens written to it; absent: the cost of such calls is unknown."""
    output_usd_per_million: float | None = Field(default=None, ge=0)
    """Price of a million output tokens, reasoning too; with that of input tokens it takes the price table's place."""
    extra: dict[str, Any] = Field(default_factory=dict)
    """Further fields of the request body, sent as they are and part of the request key, but for ids of traces and times."""


class OpenAIProvider(_HttpProvider):
    """Chat completions or responses through the openai SDK."""

    name: Literal["openai"]
    """The kind of provider."""
    api: Literal["chat", "responses"] = "chat"
    """`chat`: chat completions, which most servers speak. `responses`: the newer interface, told not to store anything."""
    seed: int | None = None
    """Provider-side sampling seed, of chat completions only; absent: not sent."""
    api_key_env: str = "OPENAI_API_KEY"
    """Environment variable that holds the key."""


class AnthropicProvider(_HttpProvider):
    """Messages through the anthropic SDK."""

    name: Literal["anthropic"]
    """The kind of provider."""
    api_key_env: str = "ANTHROPIC_API_KEY"
    """Environment variable that holds the key."""


class PluginProvider(Model):
    """A provider of another package, found by the name under which that registers it; docs/guide/providers.md shows how."""

    name: str = Field(min_length=1, max_length=100)
    """The registered name."""
    options: dict[str, Any]
    """The provider's own options, which it checks itself; `{}` for none."""
    api_key_env: str | None = None
    """Environment variable that holds its key; absent: it gets none."""
    timeout: float = Field(default=120.0, gt=0, le=3600)
    """Seconds for a whole call. Not part of the protocol."""
    max_retries: int = Field(default=4, ge=0, le=20)
    """Retries of a call that failed for reasons of transport or load. Not part of the protocol."""


PLUGIN_TAG = "a plug-in, with `options`"
"""Stands for every other name in unions of providers, and in the message about a name that fits none."""
_OWN = ("oracle", "recording", "openai", "anthropic")


def _kind(value: Any) -> str | None:
    """Which member of a union of providers is meant."""
    if isinstance(value, PluginProvider):
        return PLUGIN_TAG
    name = value.get("name") if isinstance(value, dict) else getattr(value, "name", None)
    if not isinstance(name, str):
        return None if name is None else str(name)
    # Only a plug-in has `options`: a name that is misspelt is told so, and not that its options are unknown.
    return PLUGIN_TAG if name not in _OWN and isinstance(value, dict) and "options" in value else name


_OpenAI = Annotated[OpenAIProvider, Tag("openai")]
_Anthropic = Annotated[AnthropicProvider, Tag("anthropic")]
_Plugin = Annotated[PluginProvider, Tag(PLUGIN_TAG)]
_Oracle = Annotated[OracleProvider, Tag("oracle")]
RecordedProvider = Annotated[_Oracle | _OpenAI | _Anthropic | _Plugin, Discriminator(_kind)]
"""Providers whose answers a recording can hold."""


class RecordingProvider(Model):
    """Responses that were recorded or imported earlier."""

    name: Literal["recording"]
    """The kind of provider."""
    path: str
    """A recording's folder, as `evalnoise recording` makes it, or a file of generations: JSON Lines with `task_id` and
    `generations`."""
    of: RecordedProvider | None = None
    """Whose requests the stack makes, with which options: they are made as that provider would make them and looked up, never
    sent. Needed where the recording knows its requests, refused where it does not."""
    pairing: Literal["occurrence", "fixed"] = "occurrence"
    """`occurrence`: the n-th request of a key gets its n-th response, by the cell that asked; without keys, replicate r gets a
    task's r-th response. `fixed`: one response for all who ask, which is named below."""
    occurrence: int = Field(default=0, ge=0)
    """Pairing `fixed`: which recorded response, from 0."""
    order: Literal["time", "unknown"] = "unknown"
    """Of a file: whether responses are in the order of their recording; order-based statistics need `time`. A folder says it
    itself."""
    sha256: str | None = None
    """Digest that the folder's manifest, or the file, must have; unchecked when absent, recorded always."""


ProviderSpec = Annotated[
    _Oracle | Annotated[RecordingProvider, Tag("recording")] | _OpenAI | _Anthropic | _Plugin,
    Discriminator(_kind),
]


class OracleJudge(Model):
    """A simulated judge that says what execution said, but for a known share of flips."""

    name: Literal["oracle"]
    """The kind of provider."""
    seed: int = Field(default=0, ge=0)
    """Draws every verdict."""
    flip: float = Field(default=0.1, ge=0, le=0.5)
    """Probability that a verdict is the opposite of the executed outcome."""
    unparsed: float = Field(default=0.0, ge=0, le=1)
    """Probability that an answer holds no verdict."""


JudgeSpec = Annotated[Annotated[OracleJudge, Tag("oracle")] | _OpenAI | _Anthropic | _Plugin, Discriminator(_kind)]
