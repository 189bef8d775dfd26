"""Generation: one call of a provider, journalled before it counts, and the rows it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from evalnoise.canonical import escape_surrogates, sha256_text
from evalnoise.extraction import Extraction
from evalnoise.providers.base import CallContext, Provider, Request
from evalnoise.store.journal import Journal
from schemas.errors import EvalnoiseError, StoreError
from schemas.records import Response, ResponseClass
from tasks.workshop import Workshop

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """A request, its answer, and when."""

    context: CallContext
    request: Request
    response: Response
    sent_at: datetime
    answered_at: datetime


def call_id(context: CallContext) -> str:
    """The name of a call in its shard's journal: the shard names the rest of the cell."""
    return f"{context.task.id}#{context.attempt}"


async def call(shop: Workshop, provider: Provider, journal: Journal, prompt: str, context: CallContext) -> Call:
    """The provider's answer: from the journal if it was given before, else by a call. Raises what the provider raises."""
    request = provider.request(prompt, context)
    name = call_id(context)
    known = journal.answers().get(name) if provider.journalled else None
    if known is not None:
        answered = _from_journal(journal, name, known, context, request)
        if answered is not None:
            shop.progress.call(answered.response, reused=True)
            return answered
    async with shop.semaphore(provider.name):
        shop.check_stopped()
        # Shielded: a call that was sent may be billed, so a stop waits for its answer and journals it.
        return await asyncio.shield(shop.in_flight(_send(shop, provider, journal, request, context)))


async def _send(shop: Workshop, provider: Provider, journal: Journal, request: Request, context: CallContext) -> Call:
    name = call_id(context)
    sent_at = datetime.now(UTC)
    if provider.journalled:
        await journal.sent(name, {"request_key": request.key(), "sent_at": sent_at.isoformat()})
    response = await provider.complete(request, context)
    answered_at = datetime.now(UTC)
    if provider.journalled:
        record = {
            "request_key": request.key(),
            "sent_at": sent_at.isoformat(),
            "answered_at": answered_at.isoformat(),
            "response": asdict(response),
        }
        await journal.answered(name, record)
        shop.progress.call(response, reused=False)
    return Call(context, request, response, sent_at, answered_at)


def _from_journal(journal: Journal, name: str, record: dict[str, Any], context: CallContext, request: Request) -> Call | None:
    if record["request_key"] != request.key():
        raise StoreError(
            f"{journal.path}, call {name}",
            expected=f"an answer to request {request.key()[:12]}, which this protocol makes",
            found=f"an answer to {record['request_key'][:12]}",
            remedy="The journal belongs to another plan; move it aside if you can do without its answers.",
        )
    fields = record["response"] | {"response_class": ResponseClass(record["response"]["response_class"])}
    response = Response(**fields)
    if response.response_class is ResponseClass.INFRASTRUCTURE and not response.final:
        return None  # A failure is not an answer: the shard is not sealed yet, so it is asked again.
    sent, answered = (datetime.fromisoformat(record[key]) for key in ("sent_at", "answered_at"))
    return Call(context, request, response, sent, answered)


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


def call_row(shop: Workshop, made: Call, purpose: str) -> dict[str, Any]:
    """The row of `calls`."""
    response = made.response
    return {
        **shop.lineage(made.context.task),
        "attempt": made.context.attempt,
        "purpose": purpose,
        "provider": made.request.provider,
        "model": made.request.model,
        "request_key": made.request.key(),
        "request": made.request.canonical().decode(),
        "response_class": response.response_class.value,
        "finish_reason": storable(response.finish_reason),
        "served_model": storable(response.served_model),
        "input_tokens": response.input_tokens,
        "output_tokens": response.output_tokens,
        "cost_usd": response.cost_usd,
        "error": storable(response.error),
        "response_id": storable(response.response_id),
        "fingerprint": storable(response.fingerprint),
        "response": storable(response.raw),
        "sent_at": made.sent_at,
        "answered_at": made.answered_at,
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
