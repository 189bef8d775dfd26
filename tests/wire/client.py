"""Calls of the real providers to a wire server."""

from __future__ import annotations

import asyncio

from evalnoise.providers.base import CallContext
from evalnoise.providers.make import make_provider
from schemas.records import Response, Task, TaskKind
from schemas.study import AnthropicProvider, OpenAIProvider
from wire.dialects import Dialect
from wire.server import WireServer

KEY = 'sk-planted/"k\\ey"-0123456789abcdef'
"""In the environment variable TEST_KEY during these tests; must never show."""

SPECS = {"openai": OpenAIProvider, "anthropic": AnthropicProvider}
TASK = Task("t/1", TaskKind.FUNCTION, "add", "def add(a, b): return a + b", "add")
CONTEXT = CallContext(TASK, "s", "live", 0, 0)


def spec_for(dialect: Dialect, url: str, **options):
    return SPECS[dialect.name](name=dialect.name, base_url=url + dialect.prefix, api_key_env="TEST_KEY", **options)


def call(dialect: Dialect, server: WireServer, *, prompt="hi", calls=1, max_tokens=50, **options) -> list[Response]:
    """The responses to so many calls, one after the other, through one client."""

    async def work():
        provider = make_provider(spec_for(dialect, server.url, **options), model="asked-1", max_tokens=max_tokens, retry="none")
        try:
            return [await provider.complete(provider.request(prompt, CONTEXT), CONTEXT) for _ in range(calls)]
        finally:
            await provider.close()

    return asyncio.run(work())
