"""Findings about answers that were recorded elsewhere: such a replay sends nothing, so the checks over `calls` cannot see them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

from evalnoise.providers.recording import RecordingProvider
from evalnoise.recordings.row import Recorded
from tasks.workshop import Workshop

_SHOWN: Final = 4
_USED: Final = """
select distinct request_key, task_id, occurrence from generations
where study = $study and protocol = $protocol and stack = $stack and condition = $condition
"""

Finding = tuple[str, str, str, str, float]
"""Check, stack, condition, sentence and value; each of them blocks, as it does for fresh calls."""


def recorded_findings(shop: Workshop, connection: Any) -> Iterator[Finding]:
    """What blocks a study whose conditions replay recordings from outside it."""
    study = shop.plan.study
    for stack in study.stacks:
        for condition in study.conditions:
            if f"{stack.name}/{condition.name}" not in shop.plan.protocol.recordings:
                continue
            provider = shop.provider(stack.name, condition)
            if isinstance(provider, RecordingProvider):
                names = {"stack": stack.name, "condition": condition.name}
                asked = connection.execute(_USED, {"study": study.study, "protocol": shop.plan.digest, **names}).fetchall()
                for check, said, value in _findings(_used(provider, asked)):
                    yield check, stack.name, condition.name, f"{stack.name}, {condition.name}: {said}", value


def _used(provider: RecordingProvider, asked: Sequence[tuple[str, str, int]]) -> list[Recorded]:
    recording = provider.recording
    numbers = {(key if recording.keyed else task_id, number) for key, task_id, number in asked}
    return [row for row in recording.rows if (row.request_key if recording.keyed else row.task_id, row.occurrence) in numbers]


def _findings(rows: Sequence[Recorded]) -> Iterator[tuple[str, str, float]]:
    models = Counter(row.response.served_model for row in rows if row.response.served_model)
    if len(models) > 1:
        told = ", ".join(f"{model[:80]} ({count})" for model, count in models.most_common(_SHOWN))
        more = f" and {len(models) - _SHOWN} more" if len(models) > _SHOWN else ""
        yield "served_model", f"several models gave the recorded answers: {told}{more}.", float(len(models))
    cached = sum(row.response.from_cache for row in rows)
    if cached:
        yield "from_cache", f"of {cached} recorded answers the server said that it had them stored.", float(cached)
    texts: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.response.response_id:
            texts[row.response.response_id].append(row.response.text)
    shared = [found for found in texts.values() if len(found) > 1]
    same = sum(len(found) for found in shared if len(set(found)) == 1)
    if same > sum(map(len, shared)) - same:
        yield (
            "repeated_ids",
            f"{same} recorded answers have the response id and the text of another one: they are no replicates.",
            same,
        )
