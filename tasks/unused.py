"""Answers that were paid for and are not used.

A cell that is made again, after a kill or for a retry, verifies its first answer again. If the candidate is not steady, it may come
to another end than before: then there is no second attempt, or one that asks something else, and the answer to the first one is of
no use. It was paid for all the same, so it keeps its rows in `calls`; check `answers_unused` tells of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from evalnoise.prompts import render
from evalnoise.providers.base import CallContext, Provider, Request
from evalnoise.sending.log import CallLog
from evalnoise.store.journal import Journal
from schemas.records import Task
from tasks.generate import sending_row
from tasks.plan import Shard
from tasks.workshop import Workshop

_SENDING: Final = re.compile(r"(?P<call>(?P<task>.*)#(?P<attempt>[0-9]+)(@[0-9a-f]{12})?)/[0-9]+", re.DOTALL)
"""The id of a sending in the journal of a shard of cells, as `tasks.generate` names calls and `CallLog` numbers sendings."""


def calls_of(journal: Journal) -> dict[str, tuple[str, int]]:
    """Task and attempt by the name of each call in a journal, in the order in which they were first sent."""
    matches = (found for name in journal.sent_ids() if (found := _SENDING.fullmatch(name)) is not None)
    return {match["call"]: (match["task"], int(match["attempt"])) for match in matches}


def unused_rows(
    shop: Workshop, shard: Shard, provider: Provider, journal: Journal, *, tasks: Collection[Task], used: Collection[str]
) -> Iterator[dict[str, Any]]:
    """Rows of `calls` for what the shard's journal holds of these tasks beside the calls that are used. Raises StoreError."""
    by_id = {task.id: task for task in tasks}
    for name, (task_id, attempt) in calls_of(journal).items():
        if name in used or task_id not in by_id:
            continue
        context = CallContext(by_id[task_id], shard.stack, shard.condition, shard.replicate, attempt)
        request = _request(shop, shard, provider, context, journal.sent_record(f"{name}/0") or {})
        for sending in CallLog(journal, name, request).sendings:
            yield sending_row(shop, context, request, sending, "generate")


def _request(shop: Workshop, shard: Shard, provider: Provider, context: CallContext, sent: dict[str, Any]) -> Request:
    """What was asked: written down where it depends on how the first attempt ended, else what every attempt asks."""
    if "request" not in sent:
        return provider.request(render(shop.stack(shard.stack).prompt, task=context.task), context)
    told = json.loads(sent["request"])
    return Request(told["provider"], told["model"], told["body"])
