"""Generation: one call of a provider, journalled before it counts, and the rows it leaves."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from evalnoise.canonical import escape_surrogates, sha256_text
from evalnoise.extraction import Extraction
from evalnoise.providers.base import CallContext, Conversation, Failure, Prompt, Provider, Request
from evalnoise.sending.endpoint import response_of
from evalnoise.sending.log import CallLog, Sending
from evalnoise.store.journal import Journal
from schemas.errors import EvalnoiseError
from schemas.records import Response, ResponseClass
from tasks.workshop import Workshop

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request, its answer, and all that was sent for it."""

    context: CallContext
    request: Request
    response: Response
    sendings: tuple[Sending, ...]
    """Empty for a replay, which sends nothing."""
    name: str = ""
    """The call's name in its shard's journal; empty for a replay, which has none."""


def call_id(context: CallContext) -> str:
    """The name of a call in its shard's journal: the shard names the rest of the cell."""
    return f"{context.task.id}#{context.attempt}"


def _name(prompt: Prompt, request: Request, context: CallContext) -> str:
    """The call's name; with feedback it has the request in it, since another verdict on the first answer asks something else."""
    return f"{call_id(context)}@{request.key()[:12]}" if isinstance(prompt, Conversation) else call_id(context)


async def call(shop: Workshop, provider: Provider, journal: Journal, prompt: Prompt, context: CallContext) -> Call:
    """The provider's answer: from the journal if it was given before, else by a call.

    Raises what the provider raises, and ShareError when too many answers are of one class.
    """
    request = provider.request(prompt, context)
    if not provider.journalled:
        response = await provider.send(request, context)
        if isinstance(response, Failure):
            raise TypeError(f"provider {provider.name} replays and cannot fail")
        return Call(context, request, response, ())
    name = _name(prompt, request, context)
    log = CallLog(journal, name, request, keep_request=isinstance(prompt, Conversation))
    known, sent_before = log.response, bool(log.sendings)
    response = known or await shop.sender(provider).answer(request, context, log)
    shop.progress.call(journal.shard, sent_before=sent_before, reused=known is not None)
    if known is None:
        shop.shares.count(context.stack, context.condition, response.response_class)
    return Call(context, request, response, tuple(log.sendings), name)


async def gather_cells(cells: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all cells, in order; the first typed error of any of them ends the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            running = [group.create_task(cell) for cell in cells]
    except ExceptionGroup as errors:
        typed = errors.subgroup(EvalnoiseError)
        first: BaseException = typed or errors
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        raise first from None
    return [task.result() for task in running]


def call_rows(shop: Workshop, made: Call, purpose: str) -> list[dict[str, Any]]:
    """The rows of `calls`: one for each sending, also of an earlier run whose answer was lost."""
    return [sending_row(shop, made.context, made.request, sending, purpose) for sending in made.sendings]


def sending_row(shop: Workshop, context: CallContext, request: Request, sending: Sending, purpose: str) -> dict[str, Any]:
    """The row of one sending."""
    result = sending.result
    response = result if isinstance(result, Response) else Response(text="", response_class=ResponseClass.INFRASTRUCTURE)
    if isinstance(result, Failure):
        response = response_of(result, result.text)
    return {
        **shop.lineage(context.task),
        "attempt": context.attempt,
        "sending": sending.number,
        "answered": result is not None,
        "purpose": purpose,
        "provider": request.provider,
        "model": request.model,
        "request_key": request.key(),
        "request": request.canonical().decode(),
        "response_class": response.response_class.value,
        "finish_reason": storable(response.finish_reason),
        "served_model": storable(response.served_model),
        "input_tokens": response.input_tokens,
        "output_tokens": response.output_tokens,
        "cached_tokens": response.cached_tokens,
        "cache_write_tokens": response.cache_write_tokens,
        "reasoning_tokens": response.reasoning_tokens,
        "cost_usd": sending.cost_usd,
        "prices": sending.prices,
        "error": storable(response.error),
        "response_id": storable(response.response_id),
        "request_id": storable(response.request_id),
        "fingerprint": storable(response.fingerprint),
        "from_cache": response.from_cache,
        "refusal": storable(response.refusal),
        "reasoning": storable(response.reasoning),
        "headers": json.dumps(dict(response.headers), sort_keys=True),
        "response": storable(response.raw),
        "sent_at": sending.sent_at,
        "answered_at": sending.answered_at,
    }


def generation_row(shop: Workshop, made: Call, occurrence: int, extraction: Extraction) -> dict[str, Any]:
    """The row of `generations`."""
    text, escaped = escape_surrogates(made.response.text)
    candidate = extraction.candidate
    return {
        **shop.lineage(made.context.task),
        "attempt": made.context.attempt,
        "request_key": made.request.key(),
        "occurrence": occurrence,
        "response_class": made.response.response_class.value,
        "text": text,
        "text_escaped": escaped,
        "text_sha256": sha256_text(made.response.text),
        "candidate": None if candidate is None else storable(candidate),
        "candidate_sha256": None if candidate is None else sha256_text(candidate),
        "extraction_rule": extraction.rule,
    }


def storable(text: str) -> str:
    """Text for a column that has no flag for escaped surrogates; the digest beside it is that of the very text."""
    return escape_surrogates(text)[0]
