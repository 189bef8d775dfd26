"""Calls of the real providers to a wire server."""

from __future__ import annotations

import asyncio
import itertools
import tempfile
from contextlib import contextmanager
from pathlib import Path

from evalnoise.providers.base import CallContext, Failure, Provider
from evalnoise.providers.make import make_provider
from evalnoise.sending.endpoint import Endpoint
from evalnoise.sending.log import CallLog
from evalnoise.sending.sender import Sender
from evalnoise.store.journal import Journal
from schemas.provider import AnthropicProvider, OpenAIProvider
from schemas.records import Response, Task, TaskKind
from wire.dialects import Dialect
from wire.server import WireServer

KEY = 'sk-planted/"k\\ey"-0123456789abcdef'
"""In the environment variable TEST_KEY during these tests; must never show."""

SPECS = {"openai": OpenAIProvider, "anthropic": AnthropicProvider}
TASK = Task("t/1", TaskKind.FUNCTION, "add", "def add(a, b): return a + b", "add")
CONTEXT = CallContext(TASK, "s", "live", 0, 0)


def spec_for(dialect: Dialect, url: str, **options):
    plain = {"name": dialect.name, "base_url": url + dialect.prefix, "api_key_env": "TEST_KEY"}
    return SPECS[dialect.name](**(plain | dialect.options | options))


def call(dialect: Dialect, server: WireServer, *, prompt="hi", calls=1, max_tokens=50, **options) -> list[Response]:
    """The responses to so many calls, one after the other, through one client."""

    async def work():
        provider = make_provider(spec_for(dialect, server.url, **options), model="asked-1", max_tokens=max_tokens, retry="none")
        try:
            with answering(provider) as answer:
                return [await answer(provider.request(prompt, CONTEXT), CONTEXT) for _ in range(calls)]
        finally:
            await provider.close()

    return asyncio.run(work())


async def send(dialect: Dialect, url: str, *, prompt="hi", max_tokens=50, **options) -> Response | Failure:
    """What one sending comes to: nothing is tried again."""
    provider = make_provider(spec_for(dialect, url, **options), model="asked-1", max_tokens=max_tokens, retry="none")
    try:
        return await provider.send(provider.request(prompt, CONTEXT), CONTEXT)
    finally:
        await provider.close()


def sendings(dialect: Dialect, server: WireServer, *, times=1, **options) -> list[Response | Failure]:
    """What so many sendings come to, each by a client of its own."""

    async def work():
        return [await send(dialect, server.url, **options) for _ in range(times)]

    return asyncio.run(work())


@contextmanager
def answering(provider: Provider, *, concurrency: int = 8, first_wait: float = 0.02):
    """A function that sends a request until it is answered, each time as a call of its own."""

    def in_flight(work):
        return asyncio.get_running_loop().create_task(work)

    with tempfile.TemporaryDirectory() as folder:
        journal, numbers = Journal(Path(folder) / "calls.jsonl"), itertools.count()
        endpoint = Endpoint(provider.address, concurrency=concurrency, first_wait=first_wait)
        sender = Sender(provider, endpoint, in_flight=in_flight, check_stopped=lambda: None)

        async def answer(request, context):
            return await sender.answer(request, context, CallLog(journal, f"call {next(numbers)}", request))

        yield answer
